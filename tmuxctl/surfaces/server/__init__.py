"""The headless server: the operations over HTTP, on a Unix socket or on TCP."""

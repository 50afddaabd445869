"""The page of the HTTP server: its files, the board of all sessions, signing in, and the page without JavaScript."""

"""How tmuxctl behaves with hundreds of hosts and a thousand sessions: `make weekly SUITES=scale`."""

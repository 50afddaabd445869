"""agentapi's HTTP API over a session: messages and their answers, a state of two words, files, events."""

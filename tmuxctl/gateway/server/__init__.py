"""The gateway's own machine: the configuration of nats-server, its certificates, and who may connect."""

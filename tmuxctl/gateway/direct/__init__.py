"""The direct path between a client and a host: records of the same channel, which go past the gateway."""

"""Events that outlive a connection: recorded by a host, sealed for its clients, and read by each of them whenever it is there."""

"""The operations as tools of the Model Context Protocol. Only `server` knows the SDK; the tools are a table over `Control`."""

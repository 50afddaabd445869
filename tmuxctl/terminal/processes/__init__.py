"""The processes of a session: found, grouped, ended."""

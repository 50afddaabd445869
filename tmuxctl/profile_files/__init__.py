"""Profiles as files: YAML read strictly, one built on another, found by name or by the command they are for."""

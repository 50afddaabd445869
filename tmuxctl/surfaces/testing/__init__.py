"""The pytest plugin: terminal programs under test."""

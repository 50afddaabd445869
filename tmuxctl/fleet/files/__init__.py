"""Connector files: read and checked, their JSON Schema, files to start from, and drawings of who talks to whom."""

"""The multi-agent research demo, a client of the gateway."""

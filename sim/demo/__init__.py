"""The demo: several days of real public messages, replayed through the real endpoint of a running system."""

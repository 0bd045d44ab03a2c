"""Redaction, storage opt-outs, end users, retention, erasure, export."""

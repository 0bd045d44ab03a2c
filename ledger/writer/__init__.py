"""The ledger writer: what one request leaves behind, committed in groups."""

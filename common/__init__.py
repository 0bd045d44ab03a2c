"""Shared vocabulary: clock, ids, money, errors, canonical JSON, claims, admin confirmations. Imports no app."""

"""Shared vocabulary: clock, ids, money, errors, canonical JSON, claims, the admin confirmation mixin. Imports no app."""

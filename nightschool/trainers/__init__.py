"""Trainers, interchangeable. A new one is one class here and one entry in ``RATCHET_TRAINERS``."""

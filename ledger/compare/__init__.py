"""Comparing answers: clean an answer, normalise each field once, compare two keys. Pure.

A new comparator is one class in ``comparators.py`` and one entry in ``COMPARATORS``.
"""

from ledger.compare.cleaning import clean_answer, parse_container, parse_object
from ledger.compare.comparators import COMPARATORS, Comparator, comparator_from

__all__ = ["COMPARATORS", "Comparator", "clean_answer", "comparator_from", "parse_container", "parse_object"]

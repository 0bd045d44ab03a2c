"""What the redactor finds, what it leaves alone, and that it does so in linear time."""

import json
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.redaction import REDACTORS, redact, redact_json, redact_messages

FOUND = [
    ("sk-proj-abc123def456ghi789", "[SECRET]"),
    ("key=tvly-abcdefgh12345678.", "key=[SECRET]."),
    ("AKIAIOSFODNN7EXAMPLE", "[SECRET]"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[SECRET]"),
    ("xoxb-1234567890-abcdef", "[SECRET]"),
    ("Authorization: Bearer eyJhbGciOi.J9.x1", "Authorization: Bearer [SECRET]"),
    ("write to ann.o'neil+x@mail.example.com.", "write to [EMAIL]."),
    ("josé@bücher.de", "[EMAIL]"),
    ("DE89 3704 0044 0532 0130 00 PLEASE", "[IBAN] PLEASE"),
    ("BE68 5390 0754 7034 CALL ME", "[IBAN] CALL ME"),
    ("GB82WEST12345698765432", "[IBAN]"),
    ("REF AB12 3456 7890 DE89 3704 0044 0532 0130 00", "REF AB12 3456 7890 [IBAN]"),
    ("card 4111 1111 1111 1111, thanks", "card [CARD], thanks"),
    ("4111-1111-1111-1111", "[CARD]"),
    ("3714 496353 98431", "[CARD]"),
    ("4111 1111 1111 1111 12/28", "[CARD] 12/28"),
    ("5555555555554444 123", "[CARD] 123"),
    ("CVV 123 4111 1111 1111 1111", "CVV 123 [CARD]"),
    ("5555555555554444", "[CARD]"),
    ("3123 4567 8909", "[AADHAAR]"),
    ("078-05-1123", "[SSN]"),
    ("ABCPE1234F", "[PAN]"),
    ("from 192.168.0.1.", "from [IP]."),
    ("http://10.0.0.1/path", "http://[IP]/path"),
    ("+44 20 7946 0958", "[PHONE]"),
    ("+44 (20) 7946 0958", "[PHONE]"),
    ("+33 1 42 68 53 00", "[PHONE]"),
    ("(415) 555-0132", "[PHONE]"),
    ("(020 7946 0958)", "([PHONE])"),
    ("+14155550132", "[PHONE]"),
    ("415-555-0132", "[PHONE]"),
    ("415.555.0132", "[PHONE]"),
    ("020 7946 0958", "[PHONE]"),
    ("98765 43210", "[PHONE]"),
    ("+44 20 7946 0958 2026", "[PHONE] 2026"),
    ("020 7946 0958 24/7", "[PHONE] 24/7"),
    ("415-555-0132 2026", "[PHONE] 2026"),
    ("07911123456 12345", "[PHONE] 12345"),
    ("06 12 34 56 78", "[PHONE]"),
    ("call 09061701461 now", "call [PHONE] now"),
]

LEFT_ALONE = [
    "7c1e0d44-b21f-4a6e-8035-1297901ea0b2",
    "12345678-1234-1234-1234-123456789012",
    "abcdefab-cdef-abcd-7890-123456789012",
    "abcdefab-cdef-abcd-abcf-312345678909",
    "Invoice 100234567 paid",
    "order 4111 1111 1111 1112",
    "order #1234567890",
    "serial 1234 5678 9012",
    "12345-6789 12345-6789",
    "12345-6789",
    "INTRODUCTORY",
    "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
    "2026-11-29T17:47:17.123456+00:00",
    "2026-11-29 17:47:17",
    "2024-01-01 2024-01-02 2024-01-03",
    "29.11.2026 12.30",
    "29/11/2026",
    "1717171717 and 1717171717171",
    "v1.2.3.4",
    "version 1.2.3.4",
    "Python 3.11.7",
    "0.4111111111111111",
    "x=0.1234567890 y=12345.678901",
    "ISBN 978-3-16-148410-0",
    "$1 234 567 890",
    "€ 1.234.567,89",
    "1,000,000,000",
    "pages 123-456",
    "1 2 3 4 5 6 7 8 9 10 11 12",
    "https://example.com/orders/1234567890/555-0132-4567",
    "256.256.256.256",
    "DE89 3704 0044 0532 0130 01",
    "000-12-3456, 666-12-3456, 912-34-5678",
    "ABCXE1234F",
    "risk-assessment-framework",
    "the bearer of news",
    "call_4111abc",
    "@handle, a@b, user@host.",
    "",
]


@pytest.mark.req("INV-12", "FR-13.1")
@pytest.mark.parametrize(("text", "redacted"), FOUND)
def test_redact_finds_each_kind(text: str, redacted: str) -> None:
    assert redact(text) == (redacted, 1)


@pytest.mark.req("INV-12", "INV-16")
@pytest.mark.parametrize("text", LEFT_ALONE)
def test_redact_leaves_ordinary_text_alone(text: str) -> None:
    assert redact(text) == (text, 0)


@pytest.mark.req("INV-12", "INV-16")
def test_redact_replaces_only_the_identifiers_between_lookalikes() -> None:
    text = (
        "id 7c1e0d44-b21f-4a6e-8035-1297901ea0b2, invoice 100234567, zip 12345-6789, order 4111 1111 1111 1112 at "
        "2026-11-29T17:47:17Z (v1.2.3.4, p=0.4111111111111111): card 4111 1111 1111 1111, phone +44 20 7946 0958."
    )
    expected = text.replace("4111 1111 1111 1111", "[CARD]").replace("+44 20 7946 0958", "[PHONE]")
    assert redact(text) == (expected, 2)


@pytest.mark.req("INV-12")
def test_redact_finds_every_label_in_one_text() -> None:
    text = ", ".join(found for found, _ in FOUND)
    redacted, count = redact(text)
    assert count == len(FOUND)
    assert {redactor.label for redactor in REDACTORS} == {label.split("]")[0] for label in redacted.split("[")[1:]}


@pytest.mark.req("INV-12", "INV-16")
@given(st.uuids())
def test_no_uuid_is_changed(value: UUID) -> None:
    for text in (str(value), f"id={value}, next", f"({value})"):
        assert redact(text) == (text, 0)


@pytest.mark.req("INV-16")
@given(st.datetimes())
def test_no_iso_timestamp_is_changed(value: Any) -> None:
    for text in (value.isoformat(), f"{value.isoformat()}Z", f"at {value.isoformat(sep=' ')}."):
        assert redact(text) == (text, 0)


@pytest.mark.req("INV-16")
@given(st.floats(0, 1))
def test_no_fraction_is_changed(value: float) -> None:
    text = f"score {value:.17f}"
    assert redact(text) == (text, 0)


@pytest.mark.req("INV-12")
@given(st.text(st.sampled_from("0123456789 +-().@aAeE4[]DE"), max_size=60))
def test_redacting_twice_finds_nothing_new_where_nothing_was_found(text: str) -> None:
    redacted, count = redact(text)
    assert redacted.count("[") >= count
    if count == 0:
        assert redacted == text


@pytest.mark.req("INV-12", "INV-16", "FR-1.41")
@pytest.mark.parametrize(("found", "label"), FOUND)
@pytest.mark.parametrize("before", ["", "\n", "\t", "\u2028", "\\", '"', "é "])
@pytest.mark.parametrize("dump", [json.dumps, lambda value: json.dumps(value, ensure_ascii=False, indent=1)])
def test_an_escape_before_an_identifier_in_json_neither_hides_it_nor_is_torn_apart(
    found: str, label: str, before: str, dump: Callable[[Any], str]
) -> None:
    said = {
        "note": f"Call{before} {found}",
        "then": [f"{before}{found}"],
        "left": "a\nb",
        "inner": dump([f"x\n{found}"]),
    }
    text, count = redact(dump(said))
    assert count == 3
    expected = {name: redact(value)[0] for name, value in said.items() if isinstance(value, str)}
    assert json.loads(text) == {**expected, "then": [redact(said["then"][0])[0]]}
    assert json.loads(text)["left"] == "a\nb"
    assert found not in json.dumps(json.loads(text), ensure_ascii=False)


@pytest.mark.req("INV-12")
def test_letters_of_an_address_may_be_escaped_and_broken_escapes_are_left_alone() -> None:
    assert redact(json.dumps({"to": "jörg@bücher.de"})) == ('{"to": "[EMAIL]"}', 1)
    for text in (r'"C:\q\415" and "\ud83d x"', r'an odd " quote and \" an escaped one', '"\\'):
        assert redact(text) == (text, 0)


def seconds_to_redact(text: str) -> float:
    started = time.process_time()
    redact(text)
    return time.process_time() - started


@pytest.mark.req("NFR-4", "INV-12")
@pytest.mark.parametrize(
    "unit",
    [
        *('"', "\\", '\\"', '"\\n', '"a@b.cc\\n', '\\\\"', '"\\ud83d '),
        *("a", "a@", "1", "1 ", "1.", "AA11 ", "DE89 ", "+1 (", "sk-", "https://1", "4111 1111 1111 1112 "),
        *("0.1", "123-45-6789-", "x" * 64 + "@" + ("y" * 62 + ".") * 8),
    ],
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    # Four times the text, at most eight times the work: quadratic would be sixteen. Machines may be slow.
    assert seconds_to_redact((unit * 100_000)[:100_000]) < 8 * seconds_to_redact((unit * 25_000)[:25_000]) + 0.2


@pytest.mark.req("INV-12", "FR-1.41")
def test_redact_messages_covers_contents_names_refusals_and_arguments() -> None:
    mail, placeholder = "ann@example.com", "[EMAIL]"

    def conversation(who: str) -> list[dict[str, Any]]:
        function = {"name": "f", "arguments": f'{{"to": "{who}"}}'}
        filled = {"id": "4111111111111111", "type": "function", "function": function}
        return [
            {"role": "user", "content": f"I am {who}", "name": who},
            {
                "role": "user",
                "content": [{"type": "text", "text": who}, {"type": "image_url", "image_url": {"url": "u"}}],
            },
            {
                "role": "assistant",
                "content": None,
                "refusal": who,
                "tool_calls": [filled, "malformed", {"function": 1}],
            },
            {"role": "tool", "tool_call_id": "4111111111111111", "content": who},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": who}},
            {"role": "function", "name": "f", "content": who},
        ]

    sent = conversation(mail)
    assert redact_messages(sent) == (conversation(placeholder), 8)
    assert sent == conversation(mail)


@pytest.mark.req("INV-12")
def test_messages_without_identifiers_come_back_as_the_same_objects() -> None:
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": None, "tool_calls": []}]
    redacted, count = redact_messages(messages)
    assert count == 0
    assert all(left is right for left, right in zip(redacted, messages, strict=True))


@pytest.mark.req("FR-1.13", "INV-12")
def test_redact_json_redacts_string_values_and_keeps_keys() -> None:
    value = {"stop": ["ann@example.com", 5, None], "ann@example.com": {"description": "ask bob@example.com", "n": 1.5}}
    expected = {"stop": ["[EMAIL]", 5, None], "ann@example.com": {"description": "ask [EMAIL]", "n": 1.5}}
    assert redact_json(value) == (expected, 2)
    assert value["stop"][0] == "ann@example.com"  # type: ignore[index]


@pytest.mark.req("FR-1.13")
def test_redact_json_handles_any_depth() -> None:
    value: Any = "ann@example.com"
    for _ in range(5_000):
        value = [value]
    assert redact_json(value)[1] == 1

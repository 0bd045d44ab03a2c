"""Identifiers in text become ``[LABEL]`` placeholders before anything is stored. Pure.

To add a redactor: one entry in ``REDACTORS``. Order matters: precise formats come before the broad phone patterns.
Every pattern is bounded and tried only where its ``starts`` match, so the time is linear in the text. Names and street
addresses are not found.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stdnum import iban, luhn
from stdnum.in_ import aadhaar, pan
from stdnum.us import ssn

Message = Mapping[str, Any]

# What looks like a card or phone number and is not one; matched first and left alone.
KEEP = "|".join(
    (
        r"(?<!\w)\d[0-9a-fA-F]{7}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?!\w)",  # UUID
        r"(?<![\w.+-])\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\w)",  # ISO
        r"(?<![\w.+-])\d{1,2}(?P<mark>[./-])\d{1,2}(?P=mark)(?:\d{4}|\d\d)(?![\w-]|\.\d)",  # date
        r"(?<![\w.+-])\d{1,20}\.\d{1,20}(?!\.?\d)",  # decimal number
        r"(?<![\w+-])97[89](?:[- ]?\d){10}(?![- ]?\d)",  # ISBN
        r"[$€£¥] ?\d{1,20}(?:[ .,]\d{3}){0,5}(?!\d)",  # amount
    )
)
URL = r"https?://[^\s<>\"]{1,2000}"
LETTER_VALUES = {ord(letter): str(value) for value, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ", start=10)}
OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
LONG_NUMBER = re.compile(r"\d(?:[ .()-]{0,2}\d){8}", re.ASCII)
JSON_STRING = re.compile(r'\\.|"(?P<inside>(?:[^"\\]|\\.)*+)"', re.DOTALL)
NUMBER_STARTS = re.compile(r"[0-9+($€£¥h](?:(?<!\()[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Redactor:
    """A kind of identifier.

    ``hint`` matches somewhere in every text that holds one; ``starts`` finds where one may begin, ``pattern`` matches a
    candidate there (its group ``keep`` is passed over), and ``accepted_length`` says how long a prefix of the candidate
    really is one (0: it is none).
    """

    label: str
    hint: re.Pattern[str]
    starts: re.Pattern[str]
    pattern: re.Pattern[str]
    accepted_length: Callable[[str], int] = len


def _when(accepts: Callable[[str], bool]) -> Callable[[str], int]:
    return lambda candidate: len(candidate) if accepts(candidate) else 0


def _digits(candidate: str) -> str:
    return "".join(filter(str.isdigit, candidate))


def _looks_random(candidate: str) -> bool:
    return len(candidate) >= 32 or any(map(str.isdigit, candidate))


def _has_phone_length(candidate: str) -> bool:
    return 10 <= len(_digits(candidate)) <= 15


def _card_length(candidate: str) -> int:
    """The longest run of groups that passes Luhn, since an expiry date or a code may follow the number."""
    ends = [len(candidate), *(index for index in range(len(candidate) - 1, 12, -1) if candidate[index] in " -")]
    return next((end for end in ends if luhn.checksum(_digits(candidate[:end])) == 0), 0)


def _iban_length(candidate: str) -> int:
    """The longest run of groups that is an IBAN, since other capital words may follow it.

    The checksum (ISO 7064, mod 97-10) is carried from group to group, to stay linear; stdnum then confirms the format.
    """
    head = candidate[:4].translate(LETTER_VALUES)
    remainder, end, length = 0, 3, 0
    for group in candidate[4:].split(" "):
        end += len(group) + 1
        remainder = int(f"{remainder}{group.translate(LETTER_VALUES)}") % 97
        if int(f"{remainder}{head}") % 97 == 1 and iban.is_valid(candidate[:end], check_country=False):
            length = end
    return length


def _number(label: str, *forms: str, accepted_length: Callable[[str], int], keep: str = KEEP) -> Redactor:
    """Return a redactor of a long number in some forms, found where it is no part of a longer number or a UUID."""
    pattern = rf"(?P<keep>{keep})|(?<![\w+])(?<!\d[.-])(?<![0-9a-fA-F]{{4}}-)(?:{'|'.join(forms)})(?!\w|-?\d|\.\d)"
    return Redactor(label, LONG_NUMBER, NUMBER_STARTS, re.compile(pattern, re.ASCII), accepted_length)


def _plain(label: str, hint: str, starts: str, pattern: str, accepted_length: Callable[[str], int] = len) -> Redactor:
    compiled = [re.compile(source, re.ASCII) for source in (hint, starts, pattern)]
    return Redactor(label, compiled[0], compiled[1], compiled[2], accepted_length)


REDACTORS: Sequence[Redactor] = (
    _plain(
        "SECRET",
        r"sk-|tvly-|AKIA|gh|xox",
        r"sk-|tvly-|AKIA|ghp_|gho_|ghu_|ghs_|ghr_|xox",
        r"(?<![A-Za-z0-9])(?:(?:sk|tvly)-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}"
        r"|xox[a-z]-[A-Za-z0-9-]{10,})",
        _when(_looks_random),
    ),
    _plain("SECRET", r"earer ", r"(?<=\b[Bb]earer )\S", r"[A-Za-z0-9._~+/-]{8,}=*", _when(_looks_random)),
    Redactor(
        "EMAIL",
        re.compile(r"@"),
        re.compile(r"[\w.%+'-]+"),
        re.compile(r"[\w.%+'-]+@(?:[\w-]{1,63}\.){1,8}(?:xn--[A-Za-z0-9-]{1,59}|[^\W\d_]{2,63})"),
    ),
    _plain(
        "IBAN",
        r"[A-Z][A-Z]\d\d",
        r"[A-Z][A-Z]\d\d",
        r"(?<!\w)[A-Z]{2}\d\d(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)(?!\w)",
        _iban_length,
    ),
    _number(
        "CARD",
        r"(?!1\d{12}(?!\d))[1-6]\d{12,18}",
        r"(?<![A-Z]\d\d )[1-6]\d{3}(?P<gap>[ -])\d{4}(?P=gap)\d{4}(?P=gap)\d{1,4}(?:(?P=gap)\d{1,3})?",
        r"[1-6]\d{3}(?P<space>[ -])\d{6}(?P=space)\d{4,5}",
        accepted_length=_card_length,
    ),
    _number(
        "AADHAAR",
        r"(?<!\d{3} )[2-9]\d{3}(?P<gap>[ -]?)\d{4}(?P=gap)\d{4}(?! \d{3})",
        accepted_length=_when(aadhaar.is_valid),
    ),
    _plain("SSN", r"\d-\d\d-\d", r"\d+", r"(?<![\w-])\d{3}-\d\d-\d{4}(?![\w-])", _when(ssn.is_valid)),
    _plain("PAN", r"[A-Z][A-Z]\d\d\d\d[A-Z]", r"[A-Z]+", r"(?<!\w)[A-Z]{5}\d{4}[A-Z](?!\w)", _when(pan.is_valid)),
    _plain(
        "IP",
        r"\d\.\d{1,3}\.\d{1,3}\.\d",
        r"\d+",
        rf"(?<![\w.])(?<![Vv]ersion )(?<![Rr]elease ){OCTET}(?:\.{OCTET}){{3}}(?!\w|\.\d)",
    ),
    Redactor(
        "PHONE",
        LONG_NUMBER,
        re.compile(r"\+"),
        re.compile(r"(?<![\w+)])\+\d(?:[ .()-]{0,2}\d){9,14}(?!\w|[.-]\d)", re.ASCII),
    ),
    _number(
        "PHONE",
        r"\d{3}\.\d{3}\.\d{4}",
        r"(?:\d{1,3}[ -])?\(\d{2,5}\)[ -]?\d{3,4}[ -]?\d{3,4}",
        r"(?:\d{1,3}[ -])?(?:\d{2,3}|0\d{3,4})-\d{3,4}-?\d{3,4}",
        r"(?<!\d{3} )(?:\d{1,3} )?(?:\d{2,3}|0\d{3,4}) \d{3,4} ?\d{3,4}(?! \d{3})",
        r"[6-9]\d{4}[ -]\d{5}",
        r"0\d(?P<space>[ .-])\d\d(?:(?P=space)\d\d){3}",
        r"0\d{9,10}",
        accepted_length=_when(_has_phone_length),
        keep=f"{KEEP}|{URL}",
    ),
)


def redact(text: str) -> tuple[str, int]:
    """Return the text with every identifier replaced, and how many were.

    Strings of JSON in the text (an answer, the arguments of a call) are read as what they say: an escape right before
    an identifier, as in ``"\\n555-…"``, neither hides it nor is torn apart.
    """
    text, total = _redact_escaped(text) if "\\" in text and '"' in text else (text, 0)
    for redactor in REDACTORS:
        if redactor.hint.search(text):
            text, found = _apply(redactor, text)
            total += found
    return text, total


def _redact_escaped(text: str) -> tuple[str, int]:
    """Redact the JSON strings that hold an escape, and write back those in which something was found."""
    total = 0

    def rewrite(match: re.Match[str]) -> str:
        nonlocal total
        literal = match.group()
        said = _said(match["inside"])
        redacted, found = redact(said) if said is not None else ("", 0)
        total += found
        return json.dumps(redacted, ensure_ascii=literal.isascii() or _has_surrogate(redacted)) if found else literal

    return JSON_STRING.sub(rewrite, text), total


def _said(inside: str | None) -> str | None:
    """Return what the inside of a JSON string says when it holds an escape; ``None`` when it is no such string."""
    if inside is None or "\\" not in inside:
        return None
    try:
        said: str = json.loads(f'"{inside}"', strict=False)
    except ValueError:
        return None
    return said


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _apply(redactor: Redactor, text: str) -> tuple[str, int]:
    pieces: list[str] = []
    done = position = found = 0
    for start in redactor.starts.finditer(text):
        if start.start() < position or not (match := redactor.pattern.match(text, start.start())):
            continue
        if match.lastgroup == "keep":
            position = match.end()
        elif length := redactor.accepted_length(match.group()):
            pieces += (text[done : match.start()], f"[{redactor.label}]")
            done = position = match.start() + length
            found += 1
    return "".join((*pieces, text[done:])), found


def redact_messages(messages: Iterable[Message]) -> tuple[list[Message], int]:
    """Redact what a conversation says: contents, names, refusals and the arguments of calls.

    Ids stay as they are, so that calls and their answers still match. The caller's messages are not changed; one
    without an identifier comes back as the same object.
    """
    redacted: list[Message] = []
    total = 0
    for message in messages:
        changed, found = _redact_message(message)
        redacted.append(changed if found else message)
        total += found
    return redacted, total


def _redact_message(message: Message) -> tuple[Message, int]:
    changed = dict(message)
    total = 0
    for key in ("content", "name", "refusal"):
        value = changed.get(key)
        if isinstance(value, str):
            changed[key], found = redact(value)
            total += found
        elif isinstance(value, list):
            changed[key], found = _each(value, _redact_part)
            total += found
    if isinstance(changed.get("tool_calls"), list):
        changed["tool_calls"], found = _each(changed["tool_calls"], _redact_tool_call)
        total += found
    if isinstance(changed.get("function_call"), dict):
        changed["function_call"], found = _redact_keys(changed["function_call"], ("arguments",))
        total += found
    return changed, total


def _each(items: list[Any], change: Callable[[dict[str, Any]], tuple[Any, int]]) -> tuple[list[Any], int]:
    results = [change(item) if isinstance(item, dict) else (item, 0) for item in items]
    return [item for item, _ in results], sum(found for _, found in results)


def _redact_part(part: dict[str, Any]) -> tuple[dict[str, Any], int]:
    return _redact_keys(part, ("text", "refusal"))


def _redact_tool_call(call: dict[str, Any]) -> tuple[dict[str, Any], int]:
    function = call.get("function")
    if not isinstance(function, dict):
        return call, 0
    changed, found = _redact_keys(function, ("arguments",))
    return {**call, "function": changed}, found


def _redact_keys(owner: dict[str, Any], keys: tuple[str, ...]) -> tuple[dict[str, Any], int]:
    changed = dict(owner)
    total = 0
    for key in keys:
        if isinstance(changed.get(key), str):
            changed[key], found = redact(changed[key])
            total += found
    return changed, total


def redact_json(value: Any) -> tuple[Any, int]:
    """Return a copy of a JSON value with every string in it redacted, keys apart; any depth of nesting is fine."""
    root = [value]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    total = 0
    while todo:
        holder, key = todo.pop()
        item = holder[key]
        if isinstance(item, str):
            holder[key], found = redact(item)
            total += found
        elif isinstance(item, dict):
            holder[key] = copy = dict(item)
            todo += [(copy, name) for name in copy]
        elif isinstance(item, list | tuple):
            holder[key] = entries = list(item)
            todo += [(entries, index) for index in range(len(entries))]
    return root[0], total

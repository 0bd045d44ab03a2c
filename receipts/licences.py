"""Which teachers may be distilled: only models whose licence allows training on their outputs (INV-1). Pure.

The order is fixed: closed families and router aliases first, then the built-in licences, then what the operator
declared. Configuration can therefore add an open teacher, and relabel neither a closed family nor a built-in one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence that permits training on a model's outputs."""

    name: str
    url: str


APACHE_2 = Licence("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0")
MIT = Licence("MIT", "https://opensource.org/license/mit")
OPENMDW = Licence("OpenMDW-1.1", "https://openmdw.ai/license/1-1/")
ALLOWED = {licence.name: licence for licence in (APACHE_2, MIT, OPENMDW)} | {
    "CC-BY-4.0": Licence("CC-BY-4.0", "https://creativecommons.org/licenses/by/4.0/"),
    "NVIDIA-Open-Model": Licence(
        "NVIDIA-Open-Model",
        "https://www.nvidia.com/en-us/agreements/enterprise-software/nvidia-open-model-license/",
    ),
}

# Open teachers known to the code: model id prefix (lower case) to licence. A prefix covers only releases under it.
BUILTIN: Mapping[str, Licence] = {
    "nvidia/nemotron-3-": OPENMDW,
    "nvidia/nvidia-nemotron-3-": OPENMDW,
    "qwen/qwen3-": APACHE_2,
    "deepseek-ai/deepseek-r1-0528": MIT,
    "deepseek-ai/deepseek-v3-0324": MIT,
    "deepseek-ai/deepseek-v3.": MIT,
    "mistralai/mistral-small-3": APACHE_2,
    "mistralai/mistral-small-24b-": APACHE_2,
    "openai/gpt-oss-": APACHE_2,
    "zai-org/glm-4.5": MIT,
    "zai-org/glm-4.6": MIT,
}

# Families whose terms forbid training on their outputs, wherever the name stands in a model id.
CLOSED_FAMILIES = (
    r"chatgpt",
    r"gpt[-_. ]?(?!\d+(?:\.\d+)?b\b|4all)(?:[3-9]|[1-9]\d)",  # gpt-4o, gpt-35-turbo; not gpt-6.7b (a size)
    r"(?:claude|gemini|davinci)(?![a-z])",
    r"grok(?![a-z]|-1(?![\d.]))",  # grok-1 has open weights
    r"command-(?:r|a)(?![a-z])",
    r"(?:qwen[\d.]*(?:-[a-z]+)*|qwq|qvq)-(?:max|plus|turbo|flash)(?![a-z])",  # qwen3-omni-flash
)
CLOSED = re.compile(rf"(?<![a-z0-9])(?:{'|'.join(CLOSED_FAMILIES)})")
O_SERIES = re.compile(r"(?:^|[/.:]|azure[-_])o[1-9](?![a-z0-9])")
CLOSED_VENDORS = re.compile(r"(?:^|[/.:])(?:anthropic|x-ai|xai|openai(?![/.]gpt-oss-))[/.]")
ROUTER = re.compile(r"openrouter/[^/]*|(?:.*/)?(?:auto|router)(?::.*)?")
HUMAN = "human"


class LicenceError(ValueError):
    """The teacher may not be distilled; the text says why and what to do."""


def is_closed(model: str) -> bool:
    """Whether ``model`` names a closed family, behind a router's or cloud's prefix too (``bedrock/us.anthropic.…``)."""
    name = model.strip().lower()
    return any(pattern.search(name) for pattern in (CLOSED, O_SERIES, CLOSED_VENDORS))


def is_router_alias(model: str) -> bool:
    """Whether ``model`` lets a router choose, so that nobody knows whose outputs come back."""
    return ROUTER.fullmatch(model.strip().lower()) is not None


def builtin_licence(model: str) -> Licence | None:
    """Return the licence that the code knows for ``model``."""
    name = model.strip().lower()
    return next((licence for prefix, licence in BUILTIN.items() if name.startswith(prefix)), None)


def declared_licences(text: str) -> dict[str, Licence]:
    """Parse ``RATCHET_TEACHER_LICENSES``: ``model=LICENCE`` pairs separated by commas.

    Only the allowed licences can be declared, never for a closed family, a router alias or a built-in teacher. Raises
    ``LicenceError`` with one line for each wrong entry.
    """
    declared: dict[str, Licence] = {}
    problems = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        model, _, name = (part.strip() for part in entry.partition("="))
        problem = _declaration_problem(model.lower(), name, declared)
        if problem is None:
            declared[model.lower()] = ALLOWED[name]
        else:
            problems.append(f"RATCHET_TEACHER_LICENSES: {entry!r} {problem}")
    if problems:
        raise LicenceError("\n".join(problems))
    return declared


def _declaration_problem(model: str, name: str, declared: Mapping[str, Licence]) -> str | None:
    if not model or name not in ALLOWED:
        return f"must be model=LICENCE with one of {', '.join(sorted(ALLOWED))}"
    if (refusal := _refusal(model)) is not None:
        return f"cannot be declared: {refusal}"
    known = builtin_licence(model) or declared.get(model)
    if known is not None and known.name != name:
        return f"contradicts its known licence {known.name}"
    return None


def _refusal(model: str) -> str | None:
    """Why ``model`` may never be a teacher, whatever is declared; ``None`` when its licence decides."""
    if model == HUMAN:
        return "a person is no teacher; import people's labels instead"
    if is_closed(model):
        return "its terms forbid training on its outputs; use an open teacher"
    if is_router_alias(model):
        return "a router chooses the model behind it; name one open model"
    return None


def require_distillable(model: str, declared: Mapping[str, Licence]) -> Licence:
    """Return the licence under which ``model``'s outputs may train a student.

    Raises ``LicenceError`` for a closed family, a router alias, ``human`` and an unknown teacher.
    """
    name = model.strip().lower()
    if not name:
        raise LicenceError("RATCHET_TEACHER_MODEL: name the teacher model")
    if (refusal := _refusal(name)) is not None:
        raise LicenceError(f"RATCHET_TEACHER_MODEL: {model!r} is refused: {refusal}")
    licence = builtin_licence(name) or declared.get(name)
    if licence is None:
        raise LicenceError(
            f"RATCHET_TEACHER_MODEL: the licence of {model!r} is unknown; declare it in RATCHET_TEACHER_LICENSES"
        )
    return licence

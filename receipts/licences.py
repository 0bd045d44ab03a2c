"""Which teachers may be distilled: only models whose licence allows training on their outputs (INV-1). Pure."""

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

# Open teachers known to the code: model id prefix (lower case) to licence.
BUILTIN: Mapping[str, Licence] = {
    "nvidia/nemotron-3-": OPENMDW,
    "nvidia/nvidia-nemotron-3-": OPENMDW,
    "qwen/qwen3-": APACHE_2,
    "deepseek-ai/deepseek-r1": MIT,
    "deepseek-ai/deepseek-v3": MIT,
    "mistralai/mistral-small-": APACHE_2,
    "openai/gpt-oss-": APACHE_2,
    "zai-org/glm-4": MIT,
}

# Families whose terms forbid training on their outputs, under any spelling and behind any router prefix.
CLOSED_FAMILIES = ("gpt-3", "gpt-4", "gpt-5", "chatgpt", "o1-", "o3-", "o4-", "claude", "gemini", "grok", "command-r")
CLOSED_EXACT = ("o1", "o3", "o4")
HUMAN = "human"


class LicenceError(ValueError):
    """The teacher may not be distilled; the text says why and what to do."""


def is_closed(model: str) -> bool:
    """Whether ``model`` names a closed family, also behind a router's prefix such as ``openai/`` or ``bedrock/us.``."""
    name = model.lower().rsplit("/", 1)[-1]
    segments = [name, *name.replace(":", ".").split(".")]
    return any(
        segment in CLOSED_EXACT or any(segment.startswith(family) for family in CLOSED_FAMILIES) for segment in segments
    )


def declared_licences(text: str) -> dict[str, Licence]:
    """Parse ``RATCHET_TEACHER_LICENSES``: ``model=LICENCE`` pairs separated by commas.

    Only the allowed licences can be declared, never for a closed family. Raises ``LicenceError`` naming the entry.
    """
    declared = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        model, separator, name = entry.partition("=")
        licence = ALLOWED.get(name.strip())
        if not separator or not model.strip() or licence is None:
            raise LicenceError(
                f"RATCHET_TEACHER_LICENSES: {entry!r} must be model=LICENCE with one of {', '.join(sorted(ALLOWED))}"
            )
        if is_closed(model.strip()) or model.strip().lower() == HUMAN:
            raise LicenceError(f"RATCHET_TEACHER_LICENSES: {model.strip()!r} cannot be relabelled as open")
        declared[model.strip().lower()] = licence
    return declared


def require_distillable(model: str, declared: Mapping[str, Licence]) -> Licence:
    """Return the licence under which ``model``'s outputs may train a student.

    Raises ``LicenceError`` for a closed family, for ``human`` and for an unknown teacher.
    """
    name = model.strip().lower()
    if not name or name == HUMAN:
        raise LicenceError("RATCHET_TEACHER_MODEL: name the teacher model")
    if is_closed(name):
        raise LicenceError(
            f"RATCHET_TEACHER_MODEL: the terms of {model!r} forbid training on its outputs; use an open teacher"
        )
    if name in declared:
        return declared[name]
    for prefix, licence in BUILTIN.items():
        if name.startswith(prefix):
            return licence
    raise LicenceError(
        f"RATCHET_TEACHER_MODEL: the licence of {model!r} is unknown; declare it in RATCHET_TEACHER_LICENSES"
    )

"""The CPU classifier behind the student interface."""

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cascade.confidence import score
from gateway.settings import GatewaySettings
from gateway.students import classifier
from gateway.students.base import StudentUnavailable
from gateway.students.classifier import ClassifierStudent
from ledger.taskspec import parse_spec
from tests.students.conftest import TRIAGE, CallMaker


@pytest.mark.req("FR-2.1", "FR-2.2", "INV-6")
def test_it_answers_what_it_was_trained_on(settings: GatewaySettings, call: CallMaker) -> None:
    answer = ClassifierStudent(settings, random.Random(1)).sample_sync(call("My refund now please"))
    scored = score(TRIAGE, answer.completions)
    assert (len(answer.completions), answer.model) == (3, "student-v1")
    assert scored.key == ("billing", "yes")
    assert scored.confidence > 0.9
    assert [len(completion.logprobs or []) for completion in answer.completions] == [2, 2, 2]


@pytest.mark.req("INV-6")
def test_both_ways_of_sampling_draw_the_same(settings: GatewaySettings, call: CallMaker) -> None:
    texts = ["My refund now please", "tea", "My password " + "some day " * classifier.LONG_CHARS]
    sync = ClassifierStudent(settings, random.Random(4))
    on_loop = ClassifierStudent(settings, random.Random(4))

    async def sample_all() -> list[list[str]]:
        answers = [await on_loop.sample(call(text, n=20, temperature=2.0)) for text in texts]
        return [[completion.text for completion in answer.completions] for answer in answers]

    expected = [sync.sample_sync(call(text, n=20, temperature=2.0)).completions for text in texts]
    assert asyncio.run(sample_all()) == [[completion.text for completion in drawn] for drawn in expected]


@pytest.mark.req("INV-7", "INV-12")
def test_a_missing_artefact_is_unavailable_and_says_so(settings: GatewaySettings, call: CallMaker) -> None:
    student = ClassifierStudent(settings, random.Random(1))
    for file in Path(settings.artefact_dir).rglob("*.safetensors"):
        file.unlink()
    for _ in range(2):
        with pytest.raises(StudentUnavailable) as caught:
            student.sample_sync(call())
        assert (caught.value.kind, caught.value.is_adapter_missing) == ("artefact_missing", True)
    with pytest.raises(StudentUnavailable, match="artefact_missing"):
        asyncio.run(student.sample(call()))


@pytest.mark.req("INV-7")
@pytest.mark.parametrize("artefact", [{}, {"format": "peft", "path": "x"}, {"sha256": ["unhashable"]}])
def test_a_version_of_another_kind_is_unavailable(
    settings: GatewaySettings, call: CallMaker, artefact: dict[str, object]
) -> None:
    with pytest.raises(StudentUnavailable) as caught:
        ClassifierStudent(settings, random.Random(1)).sample_sync(call(artefact=artefact))
    assert (caught.value.kind, caught.value.is_adapter_missing) == ("artefact_malformed", False)


@pytest.mark.req("INV-16")
def test_another_task_gets_answers_that_escalate(settings: GatewaySettings, call: CallMaker) -> None:
    other = parse_spec("other", {"fields": {"topic": {"type": "label", "values": ["billing"]}}})
    answer = ClassifierStudent(settings, random.Random(1)).sample_sync(call(task=other))
    assert score(other, answer.completions).is_valid is False


@pytest.mark.req("INV-7")
@pytest.mark.parametrize("content", ["", None, "\x00\ud800", "x" * 200_000, " \n" * 5_000, [{"type": "text"}]])
def test_no_text_is_too_odd_for_it(settings: GatewaySettings, call: CallMaker, content: object) -> None:
    answer = ClassifierStudent(settings, random.Random(1)).sample_sync(call(content))
    assert score(TRIAGE, answer.completions).is_valid is True


@pytest.mark.req("INV-30")
def test_serving_imports_neither_the_training_library_nor_django() -> None:
    unwanted = "any(name in sys.modules for name in ('sklearn', 'scipy', 'django'))"
    code = f"import sys, gateway.students.classifier; sys.exit({unwanted})"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], timeout=60).returncode == 0

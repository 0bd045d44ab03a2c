"""A night shows that it is alive however long one computation takes."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.settings import GatewaySettings
from nightschool.settings import NightSettings
from nightschool.trainers import classifier
from nightschool.trainers.alive import Step, run_alive
from nightschool.trainers.classifier import ClassifierTrainer
from tests.nightschool.test_classifier_trainer import COLOUR, colour_rows

BEAT_S = 0.01


class TakenOver(Exception):
    """What the lease raises."""


def waits_for(signal: threading.Event) -> Callable[[Step], str]:
    """A computation whose one step lasts until ``signal``."""

    def work(step: Step) -> str:
        assert signal.wait(30)
        step("a fit")
        return "model"

    return work


@pytest.mark.req("INV-29")
def test_a_long_step_is_reported_again_and_again_in_the_callers_thread() -> None:
    enough, seen = threading.Event(), []

    def progress(done: int, total: int, detail: str) -> None:
        seen.append((done, total, detail, threading.get_ident()))
        if len(seen) == 3:
            enough.set()

    assert run_alive(waits_for(enough), 1, progress, beat_s=BEAT_S) == "model"
    here = threading.get_ident()
    assert seen[:3] == [(0, 1, "preparing", here)] * 3
    assert seen[-1] == (1, 1, "a fit", here)


@pytest.mark.req("INV-29")
def test_a_night_that_was_taken_over_stops_the_work_at_its_next_step() -> None:
    lost, later = threading.Event(), []

    def work(step: Step) -> None:
        assert lost.wait(30)
        step("first")
        step("second")
        later.append("went on")

    def progress(done: int, total: int, detail: str) -> None:
        lost.set()
        raise TakenOver

    with pytest.raises(TakenOver):
        run_alive(work, 2, progress, beat_s=BEAT_S)
    assert later == []


def test_what_the_work_raises_is_raised_to_the_caller() -> None:
    def work(step: Step) -> None:
        raise ValueError("no fit")

    with pytest.raises(ValueError, match="no fit"):
        run_alive(work, 1, lambda *report: None, beat_s=30)


@pytest.mark.req("INV-29")
def test_the_classifier_beats_while_it_reads_its_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, texts, enough = [], classifier.TrainingTexts, threading.Event()

    def slow(*args: object) -> object:
        assert enough.wait(30)
        return texts(*args)

    def progress(done: int, total: int, detail: str) -> None:
        seen.append((done, detail))
        enough.set()

    monkeypatch.setattr(classifier, "TrainingTexts", slow)
    trainer = ClassifierTrainer(NightSettings(hold_s=2), GatewaySettings(artefact_dir=str(tmp_path)))
    trainer.train("v1", "linear", colour_rows(), {"colour": COLOUR}, progress)
    assert seen[0] == (0, "preparing")
    assert seen[-1] == (6, "colour.colour")

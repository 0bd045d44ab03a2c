"""How long the CPU classifier takes for a short text, and to train on a day of them."""

import random
import statistics
import sys
import time
from pathlib import Path

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion

from gateway.settings import GatewaySettings
from gateway.students.classifier import ClassifierStudent
from gateway.students.linear.features import BLOCKS
from tests.students.conftest import CallMaker, call, settings, trained, training

__all__ = ["call", "settings", "trained", "training"]

WORDS = ["invoice", "refund", "charge", "password", "account", "code", "colour", "tea", "please", "now", "some", "day"]


def median_us(run: object, texts: list[str]) -> float:
    """Return the median CPU time of one call, in microseconds."""
    times = []
    for text in texts:
        started = time.process_time_ns()
        run(text)  # type: ignore[operator]
        times.append(time.process_time_ns() - started)
    return statistics.median(times) / 1000


@pytest.mark.load
@pytest.mark.req("NFR-1")
def test_sampling_a_short_text_takes_less_than_a_millisecond(settings: GatewaySettings, call: CallMaker) -> None:
    rng = random.Random(1)
    texts = [" ".join(rng.choices(WORDS, k=12)) for _ in range(2_000)]
    student = ClassifierStudent(settings, rng)
    student.sample_sync(call("warm"))
    ours = median_us(lambda text: student.sample_sync(call(text)), texts)
    union = FeatureUnion(
        [(block.name, TfidfVectorizer(analyzer=block.analyse, sublinear_tf=True)) for block in BLOCKS]
    ).fit(texts)
    reference = median_us(lambda text: union.transform([text]), texts)
    sys.stdout.write(f"\n3 samples: {ours:.0f} us; scikit-learn's vectorisers alone: {reference:.0f} us\n")
    assert ours < 1_000
    assert ours < reference


@pytest.mark.load
@pytest.mark.req("NFR-1")
def test_loading_an_artefact_is_quick(settings: GatewaySettings, call: CallMaker) -> None:
    started = time.perf_counter()
    ClassifierStudent(settings, random.Random(1)).sample_sync(call())
    elapsed_ms = (time.perf_counter() - started) * 1000
    size = sum(file.stat().st_size for file in Path(settings.artefact_dir).rglob("*.*"))
    sys.stdout.write(f"\nfirst answer of a process: {elapsed_ms:.1f} ms, artefact {size / 1e6:.2f} MB\n")
    assert elapsed_ms < 1_000

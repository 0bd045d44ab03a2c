"""Loaded artefacts: read once, kept within bounds, failures remembered for a moment."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.students.linear import cache as cache_module
from gateway.students.linear.artefact import ArtefactError
from gateway.students.linear.cache import IDLE_S, RETRY_S, ArtefactCache
from gateway.students.linear.model import LinearModel
from tests.students.conftest import toy_model


class Reader:
    """A scripted ``read`` that waits until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.n_reads = 0
        self.go = threading.Event()
        self.started = threading.Event()
        self.failure: Exception | None = None
        monkeypatch.setattr(cache_module, "read", self._read)

    def _read(self, root: Path, reference: dict[str, Any]) -> LinearModel:
        self.n_reads += 1
        self.started.set()
        assert self.go.wait(5)
        if self.failure:
            raise self.failure
        return toy_model({reference["sha256"]: 1.0})


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    return Reader(monkeypatch)


def reference(name: str) -> dict[str, Any]:
    return {"sha256": name, "path": name}


def new_cache(now: Callable[[], float] = lambda: 0.0, capacity: int = 2) -> ArtefactCache:
    return ArtefactCache(Path("unused"), now, capacity)


@pytest.mark.req("INV-7")
def test_threads_that_want_the_same_artefact_read_it_once(reader: Reader) -> None:
    cache, found = new_cache(), []
    threads = [threading.Thread(target=lambda: found.append(cache.get(reference("a")))) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert reader.started.wait(5)
    reader.go.set()
    for thread in threads:
        thread.join(5)
    assert (len(found), len({id(model) for model in found}), reader.n_reads) == (5, 1, 1)


@pytest.mark.req("INV-7")
def test_reading_does_not_block_the_event_loop_and_a_client_that_hangs_up_takes_nobody_along(reader: Reader) -> None:
    cache = new_cache()

    async def main() -> None:
        impatient = asyncio.create_task(cache.get_async(reference("a")))
        patient = asyncio.create_task(cache.get_async(reference("a")))
        await asyncio.to_thread(reader.started.wait, 5)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        assert not patient.done()
        reader.go.set()
        model = await patient
        assert model is await cache.get_async(reference("a"))
        assert model is cache.get(reference("a"))

    asyncio.run(main())
    assert reader.n_reads == 1


@pytest.mark.req("INV-7")
def test_the_version_used_longest_ago_leaves_memory(reader: Reader) -> None:
    reader.go.set()
    now = 0.0
    cache = new_cache(lambda: now, capacity=2)
    first = cache.get(reference("a"))
    cache.get(reference("b"))
    now = IDLE_S
    assert cache.get(reference("a")) is first
    cache.get(reference("c"))
    assert cache.get(reference("a")) is first
    assert reader.n_reads == 3
    cache.get(reference("b"))
    assert reader.n_reads == 4


@pytest.mark.req("INV-7")
def test_more_versions_in_use_than_fit_do_not_push_each_other_out(reader: Reader) -> None:
    reader.go.set()
    now = 0.0
    cache = new_cache(lambda: now, capacity=2)
    for _ in range(5):
        for name in "abcd":
            cache.get(reference(name))
            now += IDLE_S / 5
    assert reader.n_reads == 4


@pytest.mark.req("INV-7")
def test_a_failed_read_is_remembered_for_a_moment_then_tried_again(reader: Reader) -> None:
    reader.go.set()
    now = 0.0
    cache = new_cache(lambda: now)
    reader.failure = ArtefactError("artefact_missing")
    for _ in range(3):
        with pytest.raises(ArtefactError, match="artefact_missing"):
            cache.get(reference("a"))
    assert reader.n_reads == 1
    now, reader.failure = RETRY_S, None
    assert set(cache.get(reference("a")).tasks) == {"triage"}
    assert reader.n_reads == 2


@pytest.mark.req("INV-7")
def test_an_unexpected_failure_reaches_whoever_waits_as_its_class_name(reader: Reader) -> None:
    reader.go.set()
    reader.failure = MemoryError("with a text that must not travel")
    with pytest.raises(ArtefactError) as caught:
        new_cache().get(reference("a"))
    assert str(caught.value) == caught.value.kind == "MemoryError"

"""The models of one process: calls become outcomes, backends are built once."""

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gateway.cascade.types import CallFailed
from gateway.models import Models
from gateway.settings import GatewaySettings
from gateway.students.base import StudentUnavailable
from tests.conftest import scripted_settings
from tests.fakes import ScriptedStudent, answer
from tests.upstream.fakes import student_call


class SlowToBuild(ScriptedStudent):
    """A backend whose construction lets other threads run."""

    def __init__(self, settings: GatewaySettings, rng: random.Random) -> None:
        time.sleep(0.05)


@pytest.mark.req("INV-27", "INV-7")
def test_what_a_failed_sampling_had_cost_is_in_its_outcome() -> None:
    came = answer("a", "b").completions
    ScriptedStudent.reset(lambda call: StudentUnavailable("too_few_samples", spent=came))
    models = Models(scripted_settings(student_backends={"openai": "tests.fakes.ScriptedStudent"}), random.Random(1))
    for outcome in (models.ask_sync(student_call()), asyncio.run(models.ask(student_call()))):
        assert isinstance(outcome, CallFailed)
        assert (outcome.kind, outcome.spent) == ("too_few_samples", came)


@pytest.mark.req("FR-2.12")
def test_threads_that_ask_at_once_share_one_backend_and_its_breakers() -> None:
    settings = scripted_settings(student_backends={"slow": "tests.gateway.test_models.SlowToBuild"})
    models, together = Models(settings, random.Random(1)), threading.Barrier(8)

    def build(_: Any) -> Any:
        together.wait(30)
        return models.backend("slow")

    with ThreadPoolExecutor(8) as pool:
        assert len({id(backend) for backend in pool.map(build, range(8))}) == 1

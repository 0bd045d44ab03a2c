"""A small world for the cascade, without a database: one task, one student, scripted outcomes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from common.money import Price
from gateway.cascade.check import CheckInput, Verdict, check
from gateway.cascade.serve import Served, serve
from gateway.cascade.types import Call, CascadePolicy, CascadeRequest, Outcome, Params, Role, StudentRoute, VersionRoute
from gateway.drivers import drive_sync
from ledger.taskspec import TaskSpec, parse_spec
from tests.fakes import Draws

TRIAGE = parse_spec("triage", {"fields": {"category": {"type": "label", "values": ["billing", "technical"]}}})
BILLING, TECHNICAL = '{"category": "billing"}', '{"category": "technical"}'
LIVE = VersionRoute(id=1, number=1, adapter="student-v1", stage=3, threshold=0.8)
CANARY = VersionRoute(id=2, number=2, adapter="student-v2", stage=1, threshold=0.8)
SHADOW = VersionRoute(id=3, number=3, adapter="student-v3", stage=1, threshold=0.8)
STUDENT = StudentRoute(id=1, name="default", backend="scripted", base_model="base")
POLICY = CascadePolicy(
    audit_rate=0.0,
    teacher_price=Price(1_000_000_000, 3_000_000_000),
    student_price=Price(60_000_000, 240_000_000),
    teacher_model="teacher",
)


@dataclass
class World:
    """Runs the cascade against scripted outcomes and remembers the calls it asked for."""

    calls: list[Call] = field(default_factory=list)

    def ask(self, script: Callable[[Call], Outcome]) -> Callable[[Call], Outcome]:
        def run(call: Call) -> Outcome:
            self.calls.append(call)
            return script(call)

        return run

    def serve(
        self,
        script: Callable[[Call], Outcome],
        *,
        student: StudentRoute = STUDENT,
        task: TaskSpec = TRIAGE,
        params: Params = Params(),
        draws: Sequence[float] = (0.5, 0.5),
        policy: CascadePolicy = POLICY,
        **request: Any,
    ) -> Served:
        asked = CascadeRequest(task, student, [{"role": "user", "content": "hello"}], params, **request)
        return drive_sync(serve(asked, policy, Draws(draws)), self.ask(script))

    def check(self, script: Callable[[Call], Outcome], *, may_retry: bool = False, **owed: Any) -> Verdict:
        values: dict[str, Any] = {
            "request": CascadeRequest(TRIAGE, STUDENT, [{"role": "user", "content": "hello"}]),
            "served_text": BILLING,
            "served_by": Role.STUDENT,
            "wants_audit": False,
            "shadow": None,
        }
        steps = check(CheckInput(**{**values, **owed}), POLICY, may_retry=may_retry)
        return drive_sync(steps, self.ask(script))


@pytest.fixture
def world() -> World:
    return World()


def by_role(student: Any, teacher: Any) -> Callable[[Call], Outcome]:
    """A script with one outcome (or a function of the call) for each role."""

    def run(call: Call) -> Outcome:
        outcome = student if call.role is Role.STUDENT else teacher
        return outcome(call) if callable(outcome) else outcome

    return run


def routed(**routes: Any) -> StudentRoute:
    """The student with these versions routed."""
    return replace(STUDENT, **routes)

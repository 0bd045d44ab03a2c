"""What a request's calls cost, in nano-USD, and what the teacher alone would have cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.cascade.types import CascadePolicy, Completion


@dataclass(slots=True)
class Bill:
    """Costs and tokens so far; the cost is always exactly the sum of the student's and the teacher's part."""

    student_cost_nusd: int = 0
    teacher_cost_nusd: int = 0
    baseline_nusd: int = 0
    baseline_est_nusd: int | None = None
    student_in_tokens: int = 0
    student_out_tokens: int = 0
    teacher_in_tokens: int = 0
    teacher_out_tokens: int = 0
    latency_ms: float = 0.0

    @property
    def cost_nusd(self) -> int:
        """The request's actual cost."""
        return self.student_cost_nusd + self.teacher_cost_nusd

    def add_student(self, policy: CascadePolicy, samples: Sequence[Completion]) -> None:
        """Add one student call: the prompt once, every sample's output."""
        tokens_in, tokens_out = _tokens(samples)
        self.student_in_tokens += tokens_in
        self.student_out_tokens += tokens_out
        self.student_cost_nusd += policy.student_price.cost_nusd(tokens_in, tokens_out)

    def add_teacher(self, policy: CascadePolicy, choices: Sequence[Completion]) -> int:
        """Add one teacher call and return its cost."""
        tokens_in, tokens_out = _tokens(choices)
        self.teacher_in_tokens += tokens_in
        self.teacher_out_tokens += tokens_out
        cost = policy.teacher_price.cost_nusd(tokens_in, tokens_out)
        self.teacher_cost_nusd += cost
        return cost


def _tokens(choices: Sequence[Completion]) -> tuple[int, int]:
    return (choices[0].in_tokens if choices else 0), sum(choice.out_tokens for choice in choices)


def measured_baseline(policy: CascadePolicy, answered: Sequence[Completion], n: int) -> int:
    """Return what ``n`` choices like the one that the teacher answered would have cost: the prompt is billed once."""
    tokens_in, tokens_out = _tokens(answered)
    return policy.teacher_price.cost_nusd(tokens_in, n * tokens_out)


def estimated_baseline(policy: CascadePolicy, served: Sequence[Completion]) -> int:
    """Estimate the teacher's cost of the served choices: their tokens plus the usual reasoning tokens each."""
    tokens_in, tokens_out = _tokens(served)
    return policy.teacher_price.cost_nusd(tokens_in, tokens_out + policy.reasoning_tokens * len(served))

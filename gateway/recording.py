"""What one served request and one settled check write into the ledger: values in, rows out."""

from gateway.cascade.check import CheckInput, Verdict
from gateway.cascade.serve import Served
from gateway.cascade.types import Role
from gateway.incoming import Admitted, Incoming
from gateway.settings import GatewaySettings
from gateway.storing import example_of
from ledger.models import Request
from ledger.rows import ExampleRow, RequestRow


def request_row(incoming: Incoming, admitted: Admitted, served: Served, wall_ms: float) -> RequestRow:
    """Return the request's row; its checks are still pending."""
    bill, check = served.bill, served.check
    scored = served.scored if served.is_student_sampled else None
    return RequestRow(
        id=incoming.id,
        at=incoming.at,
        on=incoming.at.date(),
        student_id=admitted.request.student.id,
        task=admitted.request.task.name,
        route=served.route,
        served_by=served.served_by,
        client=incoming.client,
        version_id=served.version.id if served.version else None,
        stage=served.version.stage if served.version else None,
        confidence=scored.confidence if scored else None,
        threshold=served.threshold,
        label_p=served.label_p,
        escalated=served.escalated,
        audit="pending" if check and check.wants_audit else "none",
        shadow="pending" if check and check.shadow else "none",
        shadow_version_id=check.shadow.id if check and check.shadow else None,
        shadow_stage=check.shadow.stage if check and check.shadow else None,
        student_agree=served.student_agree,
        cost_nusd=bill.cost_nusd,
        student_cost_nusd=bill.student_cost_nusd,
        teacher_cost_nusd=bill.teacher_cost_nusd,
        baseline_nusd=bill.baseline_nusd,
        baseline_est_nusd=bill.baseline_est_nusd,
        student_in_tokens=bill.student_in_tokens,
        student_out_tokens=bill.student_out_tokens,
        teacher_in_tokens=bill.teacher_in_tokens,
        teacher_out_tokens=bill.teacher_out_tokens,
        latency_ms=bill.latency_ms,
        wall_ms=wall_ms,
        store_opt_out=admitted.opt_out,
        end_user=admitted.end_user,
        client_request_id=incoming.client_request_id,
    )


def check_input(admitted: Admitted, served: Served) -> CheckInput | None:
    """Return the check that was drawn on a served request, with what it needs; ``None`` when none was."""
    if served.check is None:
        return None
    is_teacher = served.served_by is Role.TEACHER
    teacher = served.teacher
    return CheckInput(
        request=admitted.request,
        served_text=served.choices[0].text,
        served_by=served.served_by,
        wants_audit=served.check.wants_audit,
        shadow=served.check.shadow,
        reference=teacher.text if is_teacher and teacher is not None and teacher.is_usable else None,
    )


def served_example(
    incoming: Incoming, admitted: Admitted, served: Served, settings: GatewaySettings
) -> list[ExampleRow]:
    """Return the example the serving teacher's answer becomes, as a list of none or one."""
    if admitted.opt_out:
        return []
    row = example_of(
        admitted.request,
        served.teacher,
        settings,
        client=incoming.client,
        end_user=admitted.end_user,
        at=incoming.at,
    )
    return [row] if row else []


def apply_verdict(row: RequestRow | Request, verdict: Verdict) -> None:
    """Write a check's verdict and costs onto its request's row (the same for inline and off-path checks)."""
    bill = verdict.bill
    if row.audit == "pending":
        row.audit = verdict.audit
    if row.shadow == "pending":
        row.shadow = verdict.shadow
    if verdict.student_agree is not None:
        row.student_agree = verdict.student_agree
    row.student_cost_nusd += bill.student_cost_nusd
    row.teacher_cost_nusd += bill.teacher_cost_nusd
    row.cost_nusd = row.student_cost_nusd + row.teacher_cost_nusd
    row.student_in_tokens += bill.student_in_tokens
    row.student_out_tokens += bill.student_out_tokens
    row.teacher_in_tokens += bill.teacher_in_tokens
    row.teacher_out_tokens += bill.teacher_out_tokens
    if verdict.baseline_nusd is not None:
        row.baseline_nusd = verdict.baseline_nusd


VERDICT_COLUMNS = [
    "audit", "shadow", "student_agree", "student_cost_nusd", "teacher_cost_nusd", "cost_nusd", "student_in_tokens",
    "student_out_tokens", "teacher_in_tokens", "teacher_out_tokens", "baseline_nusd", "stored", "store_opt_out",
]  # fmt: skip

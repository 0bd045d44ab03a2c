"""Whether a text that could be stored when its request arrived may still be stored now.

A teacher takes its time and a check waits for a worker; an opt-out registered meanwhile counts (INV-22). Asking again
only ever finds new reasons against: what was opted out on arrival stays so.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from django.db.models import Q

from gateway.incoming import Admitted, Incoming
from gateway.settings import GatewaySettings
from gateway.snapshot import Snapshot
from ledger.models import ApiKey, NoTrain, Request, Task
from privacy.opt_out import store_opt_out


def admitted_now(incoming: Incoming, admitted: Admitted, now: Snapshot, settings: GatewaySettings) -> Admitted:
    """Return ``admitted`` with the opt-out that holds in the snapshot ``now``."""
    if admitted.opt_out:
        return admitted
    task, _ = now.tasks.get(incoming.task, (admitted.request.task, None))
    opt_out = store_opt_out(
        stores_examples=settings.stores_examples,
        task_may_store=task.may_store,
        key_may_store=all(key.may_store for key in now.keys.values() if key and key.name == incoming.client),
        request_store=incoming.store,
        end_users=admitted.end_users,
        no_train=now.no_train,
    )
    return replace(admitted, opt_out=opt_out) if opt_out else admitted


def opt_out_at_settling(
    row: Request, end_users: Collection[tuple[str, str]], settings: GatewaySettings, using: str
) -> str:
    """Return why the answer to a served request may not be stored now, by the database; ``end_users`` as admitted."""
    if row.store_opt_out:
        return row.store_opt_out
    named = {*end_users, (row.client, row.end_user)} if row.end_user else set(end_users)
    spec = Task.objects.using(using).filter(name=row.task).values_list("spec", flat=True).first()
    return store_opt_out(
        stores_examples=settings.stores_examples,
        task_may_store=_may_store(spec),
        key_may_store=not ApiKey.objects.using(using).filter(name=row.client, may_store=False).exists(),
        request_store=None,
        end_users=named,
        no_train=_registered(named, using),
    )


def _registered(named: Collection[tuple[str, str]], using: str) -> set[tuple[str, str]]:
    if not named:
        return set()
    either = Q()
    for client, end_user in named:
        either |= Q(client=client, end_user=end_user)
    return set(NoTrain.objects.using(using).filter(either).values_list("client", "end_user"))


def _may_store(spec: Any) -> bool:
    return not isinstance(spec, Mapping) or spec.get("store") is not False

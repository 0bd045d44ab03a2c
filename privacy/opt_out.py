"""Why a request's teacher answers may not be stored, broadest reason first (FR-13.1, INV-22). Pure."""

from collections.abc import Container, Iterable


def store_opt_out(
    *,
    stores_examples: bool,
    task_may_store: bool,
    key_may_store: bool,
    request_store: bool | None,
    end_users: Iterable[tuple[str, str]] = (),
    no_train: Container[tuple[str, str]] = (),
) -> str:
    """Return ``global``, ``task``, ``key``, ``request``, ``end_user``, or an empty string when storing is allowed.

    ``end_users`` are (scope, hash in that scope) of each identifier the request named, ``no_train`` what is registered.
    Nothing in a request turns an opt-out back: ``request_store=True`` is the default spelled out.
    """
    if not stores_examples:
        return "global"
    if not task_may_store:
        return "task"
    if not key_may_store:
        return "key"
    if request_store is False:
        return "request"
    if any(end_user in no_train for end_user in end_users):
        return "end_user"
    return ""

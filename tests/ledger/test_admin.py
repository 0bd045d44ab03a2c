"""The ledger's read-only pages, with whatever somebody types into their address."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client

from ledger.rows import LedgerEntry, RequestRow
from ledger.writer.batch import write_entries

AT = datetime(2026, 11, 2, 12, 30, tzinfo=UTC)


@pytest.fixture
def page(student, client: Client, django_user_model) -> Client:
    """A superuser's browser, and one request in the ledger."""
    row = RequestRow(UUID(int=1), AT, AT.date(), student.pk, "default", "cold_start", "teacher")
    write_entries([LedgerEntry(row, [])], connection)
    client.force_login(django_user_model.objects.create_superuser("root", password="x"))
    return client


@pytest.mark.req("FR-3.1")
@pytest.mark.parametrize(("query", "n_rows"), [("on=2026-11-02", 1), ("on=2026-11-01", 0), ("task=default", 1)])
def test_requests_are_filtered_by_what_the_rollups_know(page: Client, query: str, n_rows: int):
    answer = page.get(f"/admin/ledger/request/?{query}")
    assert answer.status_code == 200
    assert len(answer.context["cl"].result_list) == n_rows


@pytest.mark.req("FR-3.1")
@pytest.mark.parametrize("query", ["on=yesterday", "on=2026-13-45", "task=%00", "route=%00", "q=%00", "q=req_1"])
@pytest.mark.parametrize("model", ["request", "example"])
def test_an_address_that_makes_no_sense_is_no_server_error(page: Client, query: str, model: str):
    assert page.get(f"/admin/ledger/{model}/?{query}", follow=True).status_code == 200

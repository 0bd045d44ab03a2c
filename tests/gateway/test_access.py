"""Who may call without a key: programs of this machine, and nobody who only looks like one."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models import QuerySet

from common.errors import Refused
from gateway.access import KEYLESS, authorise
from gateway.keys import bearer, create_key, revoke_key
from gateway.snapshot import build_snapshot
from gateway.wire.errors import APIError
from ledger.models import AdminAction, ApiKey
from tests.conftest import scripted_settings

NO_KEYS: Any = SimpleNamespace(keys={})


def refusal(headers: dict[str, str], client_host: str, snapshot: Any = NO_KEYS) -> APIError:
    with pytest.raises(APIError) as caught:
        authorise(headers, client_host, snapshot)
    return caught.value


@pytest.mark.req("FR-1.2", "INV-13")
@pytest.mark.parametrize("client_host", ["127.0.0.1", "127.9.8.7", "::1"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "127.0.0.1:8000"},
        {"host": "localhost"},
        {"host": "LOCALHOST:8000"},
        {"host": "[::1]:8000"},
        {"host": "app.localhost:8000", "origin": "http://localhost:3000"},
        {"host": "localhost", "authorization": "Bearer unused"},
    ],
    ids=str,
)
def test_a_program_of_this_machine_needs_no_key_while_none_was_ever_made(headers, client_host):
    assert authorise(headers, client_host, NO_KEYS) is KEYLESS


@pytest.mark.req("FR-1.2", "INV-13")
@pytest.mark.parametrize(
    ("headers", "client_host"),
    [
        ({}, "192.0.2.7"),
        ({}, ""),
        ({}, "unix:/run/x.sock"),
        ({"host": "localhost"}, "192.0.2.7"),
        ({"host": "ratchet.example"}, "127.0.0.1"),
        ({"host": "127.0.0.1.evil.example:8000"}, "127.0.0.1"),
        ({"host": "localhost.evil.example"}, "127.0.0.1"),
        ({"host": "localhost@evil.example"}, "127.0.0.1"),
        ({"host": "[::1"}, "127.0.0.1"),
        ({"host": ""}, "127.0.0.1"),
        ({"host": "localhost", "x-forwarded-for": "127.0.0.1"}, "127.0.0.1"),
        ({"host": "localhost", "forwarded": "for=127.0.0.1"}, "127.0.0.1"),
        ({"host": "localhost", "x-real-ip": "127.0.0.1"}, "127.0.0.1"),
        ({"host": "localhost", "x-forwarded-host": "localhost"}, "127.0.0.1"),
        ({"host": "localhost", "via": "1.1 proxy"}, "127.0.0.1"),
        ({"host": "localhost", "origin": "https://evil.example"}, "127.0.0.1"),
        ({"host": "localhost", "origin": "null"}, "127.0.0.1"),
        ({"host": "localhost", "origin": "http://localhost.evil.example"}, "127.0.0.1"),
    ],
    ids=str,
)
def test_others_proxies_and_pages_of_other_sites_need_a_key(headers, client_host):
    error = refusal(headers, client_host)
    assert (error.status, error.code) == (403, "no_api_key_configured")
    assert "RATCHET_API_KEY" in error.message
    assert "evil" not in error.message


@pytest.mark.usefixtures("student")
@pytest.mark.req("INV-13")
def test_revoking_the_last_key_shuts_the_door_instead_of_opening_it(clock):
    create_key("shop", actor="ops", clock=clock)
    revoke_key(ApiKey.objects.get(), actor="ops", reason="leaked", clock=clock)
    error = refusal({"host": "localhost"}, "127.0.0.1", build_snapshot(scripted_settings()))
    assert (error.status, error.code) == (401, "invalid_api_key")


@pytest.mark.req("FR-1.2")
@pytest.mark.parametrize(
    ("authorization", "x_api_key", "key"),
    [
        ("Bearer rk-1", "", "rk-1"),
        ("bearer  rk-1 ", "rk-2", "rk-1"),
        ("", "rk-2", "rk-2"),
        ("Basic abc", "rk-2", "rk-2"),
        ("Bearer", "rk-2", "rk-2"),
        ("Bearer ", "", ""),
        ("rk-1", "", ""),
    ],
)
def test_a_key_comes_as_a_bearer_token_or_in_x_api_key(authorization, x_api_key, key):
    assert bearer(authorization, x_api_key) == key


@pytest.mark.usefixtures("student")
@pytest.mark.req("INV-13")
def test_a_taken_name_is_refused_also_to_whoever_loses_a_race_for_it(clock, monkeypatch):
    create_key("shop", actor="ops", clock=clock)
    monkeypatch.setattr(QuerySet, "exists", lambda self: False)
    with pytest.raises(Refused, match="'shop' exists"):
        create_key("shop", actor="ops", clock=clock)
    assert (ApiKey.objects.count(), AdminAction.objects.count()) == (1, 1)

"""Endpoints that lost their adapters heal; what happened is in the release log."""

from dataclasses import replace
from typing import Any

import pytest

from common.clock import ManualClock
from gateway.adapters import reconcile_adapters
from gateway.settings import EndpointSettings, GatewaySettings
from ledger.models import Event
from tests.gateway.world import make_version
from tests.upstream.fakes import KEY, Reply, Upstream

LORA = {"format": "lora", "root": "/data/adapters"}


@pytest.fixture
def at(gateway_settings: GatewaySettings, upstream: Upstream) -> GatewaySettings:
    return replace(gateway_settings, student=EndpointSettings(base_url=upstream.base_url, api_key=KEY))


def made(upstream: Upstream) -> list[tuple[str, Any]]:
    return [(seen.path, seen.body) for seen in upstream.seen]


@pytest.mark.usefixtures("student")
@pytest.mark.req("NFR-2", "FR-8.2")
def test_a_restarted_endpoint_gets_its_live_and_shadow_adapters_back_and_loses_retired_ones(
    at: GatewaySettings, upstream: Upstream, clock: ManualClock
) -> None:
    make_version(clock, 1, "retired", 0, artefact=LORA)
    make_version(clock, 2, artefact=LORA)
    make_version(clock, 3, "shadow", 0, artefact=LORA)
    upstream.replies(Reply(body={"data": [{"id": "base"}, {"id": "default-v1"}, {"id": "default-v3"}]}))
    reconcile_adapters(at, clock)
    assert made(upstream)[1:] == [
        ("/v1/unload_lora_adapter", {"lora_name": "default-v1"}),
        ("/v1/load_lora_adapter", {"lora_name": "default-v2", "lora_path": "/data/adapters/default-v2"}),
    ]
    assert [(event.kind, event.version.number) for event in Event.objects.all()] == [("adapter_reloaded", 2)]


@pytest.mark.usefixtures("student")
@pytest.mark.req("NFR-2", "INV-12")
def test_a_failed_reload_is_recorded_by_its_class_alone(at: GatewaySettings, upstream: Upstream, clock: ManualClock):
    make_version(clock, 1, artefact=LORA)
    upstream.replies(Reply(body={"data": []}), Reply(500, {"error": {"message": "secret path"}}))
    reconcile_adapters(at, clock)
    assert [(event.kind, event.detail) for event in Event.objects.all()] == [
        ("adapter_reload_failed", "default-v1 at endpoint 1: http_500")
    ]
    upstream.replies(Reply(body={"data": []}), Reply(500))
    reconcile_adapters(at, clock)
    assert Event.objects.count() == 1


@pytest.mark.usefixtures("student")
@pytest.mark.req("NFR-2")
def test_a_classifier_needs_no_endpoint(at: GatewaySettings, upstream: Upstream, clock: ManualClock) -> None:
    make_version(clock, 1, artefact={"format": "linear"})
    assert reconcile_adapters(at, clock) == []
    assert upstream.seen == []

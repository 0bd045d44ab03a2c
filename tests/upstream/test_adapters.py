"""Adapter management at vLLM endpoints."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.upstream.adapters import Reconciled, list_models, load_adapter, reconcile, reload_adapter, unload_adapter
from gateway.upstream.base import UpstreamError
from tests.upstream.fakes import KEY, Reply, Upstream

ALREADY = {"object": "error", "message": "The lora adapter 'v1' has Already been loaded.", "code": 400}
NOT_LOADED = {"error": {"message": "The lora adapter 'v1' cannot be found.", "code": 400}}


def models(*names: str) -> Reply:
    return Reply(body={"object": "list", "data": [{"id": name} for name in names]})


def made(upstream: Upstream) -> list[tuple[str, str, Any]]:
    return [(seen.method, seen.path, seen.body) for seen in upstream.seen]


@pytest.mark.req("FR-8.2")
@pytest.mark.parametrize("suffix", ["/v1", "/v1/", "", "/"])
def test_the_root_is_the_base_url_without_v1(upstream: Upstream, suffix: str) -> None:
    load_adapter(upstream.base_url.removesuffix("/v1") + suffix, "v1", "/data/adapters/v1", KEY)
    assert made(upstream) == [("POST", "/v1/load_lora_adapter", {"lora_name": "v1", "lora_path": "/data/adapters/v1"})]
    assert upstream.seen[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.req("FR-8.2", "INV-13")
def test_without_a_key_no_header_is_sent(upstream: Upstream) -> None:
    load_adapter(upstream.base_url, "v1", "/p")
    assert "Authorization" not in upstream.seen[0].headers


@pytest.mark.req("FR-8.2")
def test_an_adapter_that_is_already_loaded_is_fine(upstream: Upstream) -> None:
    upstream.replies(Reply(400, ALREADY))
    load_adapter(upstream.base_url, "v1", "/p")


@pytest.mark.req("FR-8.2", "INV-12")
@pytest.mark.parametrize(
    "reply",
    [Reply(400, {"error": {"message": "no such path"}}), Reply(401), Reply(404), Reply(500), Reply(409, ALREADY)],
)
def test_any_other_refusal_to_load_raises(upstream: Upstream, reply: Reply) -> None:
    upstream.replies(reply)
    with pytest.raises(UpstreamError) as caught:
        load_adapter(upstream.base_url, "v1", "/p", KEY)
    assert str(caught.value) == f"http_{reply.status}"


@pytest.mark.req("FR-8.2")
def test_unloading_what_is_not_loaded_is_fine(upstream: Upstream) -> None:
    upstream.replies(Reply(404, NOT_LOADED), Reply(400, NOT_LOADED), Reply(500))
    unload_adapter(upstream.base_url, "v1")
    unload_adapter(upstream.base_url, "v1")
    with pytest.raises(UpstreamError):
        unload_adapter(upstream.base_url, "v1")
    assert made(upstream)[0] == ("POST", "/v1/unload_lora_adapter", {"lora_name": "v1"})


@pytest.mark.req("FR-8.2", "NFR-2")
def test_reloading_replaces_the_weights_in_memory(upstream: Upstream) -> None:
    reload_adapter(upstream.base_url, "v1", "/p")
    assert [path for _, path, _ in made(upstream)] == ["/v1/unload_lora_adapter", "/v1/load_lora_adapter"]


@pytest.mark.req("NFR-2")
def test_models_are_listed(upstream: Upstream) -> None:
    upstream.replies(Reply(body={"data": [{"id": "base"}, {"id": 3}, "junk", {"id": "v1"}]}))
    assert list_models(upstream.base_url, KEY) == {"base", "v1"}


@pytest.mark.parametrize("body", [b"junk", b"[]", b"{}", b'{"data": {}}'])
def test_an_unreadable_list_is_a_failure(upstream: Upstream, body: bytes) -> None:
    upstream.replies(Reply(body=body))
    with pytest.raises(UpstreamError, match="bad_response"):
        list_models(upstream.base_url)


@pytest.mark.req("NFR-2")
def test_reconciling_loads_what_is_missing_and_unloads_only_what_is_retired(start: Callable[[], Upstream]) -> None:
    restarted, partial, down = start(), start(), start()
    restarted.replies(models("base"), Reply(), Reply())
    partial.replies(models("base", "v1", "v2", "v3", "other"), Reply())
    down.replies(Reply(503))
    endpoints = [restarted.base_url, partial.base_url, down.base_url]
    desired = {"v2": "/data/v2", "v3": "/data/v3"}
    assert reconcile(endpoints, desired, retired=["v1", "v0", "v3"], api_key=KEY) == [
        Reconciled(endpoints[0], loaded=["v2", "v3"]),
        Reconciled(endpoints[1], unloaded=["v1"]),
        Reconciled(endpoints[2], unavailable="http_503"),
    ]
    assert [seen.body for seen in restarted.seen[1:]] == [
        {"lora_name": "v2", "lora_path": "/data/v2"},
        {"lora_name": "v3", "lora_path": "/data/v3"},
    ]
    assert len(partial.seen) == 2 and len(down.seen) == 1


@pytest.mark.req("NFR-2")
def test_one_adapters_failure_stops_no_other(upstream: Upstream) -> None:
    upstream.replies(models("v1"), Reply(500), Reply(400), Reply())
    (found,) = reconcile([upstream.base_url], {"v2": "/2", "v3": "/3"}, retired=["v1"])
    assert found == Reconciled(upstream.base_url, loaded=["v3"], failed={"v1": "http_500", "v2": "http_400"})


@pytest.mark.req("NFR-2")
def test_nothing_to_do_changes_nothing(upstream: Upstream) -> None:
    upstream.replies(models("base", "v1"))
    assert reconcile([upstream.base_url], {"v1": "/1"}) == [Reconciled(upstream.base_url)]
    assert len(upstream.seen) == 1

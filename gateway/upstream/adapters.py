"""LoRA adapters at vLLM endpoints: listing, loading, unloading, and bringing every replica to what serving needs."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from gateway.upstream.base import UpstreamError
from gateway.upstream.failures import bad_response
from gateway.upstream.http import checked, request_headers
from gateway.upstream.sync import httpx_failures

TIMEOUT = httpx.Timeout(60.0, connect=5.0)


@dataclass(slots=True)
class Reconciled:
    """What was done at one endpoint. ``failed`` maps an adapter to the failure's kind."""

    base_url: str
    loaded: list[str] = field(default_factory=list)
    unloaded: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    unavailable: str = ""
    """The kind of the failure when its models could not even be listed."""


def list_models(base_url: str, api_key: str = "") -> set[str]:
    """Return the names that the endpoint serves, base model and adapters; raises ``UpstreamError``."""
    document = _json(_request("GET", base_url, "models", api_key))
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise bad_response()
    names = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    return {name for name in names if isinstance(name, str)}


def load_adapter(base_url: str, name: str, path: str, api_key: str = "") -> None:
    """Load the adapter at ``path`` (a folder that the endpoint sees) as model ``name``.

    An adapter that is already loaded stays as it is; any other refusal raises ``UpstreamError``.
    """
    try:
        _request("POST", base_url, "load_lora_adapter", api_key, {"lora_name": name, "lora_path": path})
    except UpstreamError as error:
        if error.status != 400 or "already" not in error.message.lower():
            raise


def unload_adapter(base_url: str, name: str, api_key: str = "") -> None:
    """Unload ``name``; one that is not loaded is fine, any other refusal raises ``UpstreamError``."""
    try:
        _request("POST", base_url, "unload_lora_adapter", api_key, {"lora_name": name})
    except UpstreamError as error:
        if error.status != 404 and "cannot be found" not in error.message:
            raise


def reload_adapter(base_url: str, name: str, path: str, api_key: str = "") -> None:
    """Load ``name`` anew, replacing what an earlier training of the same name may have left; raises ``UpstreamError``.

    An endpoint keeps an adapter's weights in memory, so loading alone would go on serving the old ones.
    """
    unload_adapter(base_url, name, api_key)
    load_adapter(base_url, name, path, api_key)


def reconcile(
    endpoints: Iterable[str], desired: Mapping[str, str], retired: Collection[str] = (), api_key: str = ""
) -> list[Reconciled]:
    """Load what is missing of ``desired`` (adapter to path) at each endpoint and unload what it has of ``retired``.

    Whatever is in neither (the base model, a candidate under evaluation, other people's adapters) is left alone. One
    endpoint's failure stops no other.
    """
    return [_reconcile_one(base_url, desired, set(retired) - desired.keys(), api_key) for base_url in endpoints]


def _reconcile_one(base_url: str, desired: Mapping[str, str], retired: set[str], api_key: str) -> Reconciled:
    result = Reconciled(base_url)
    try:
        observed = list_models(base_url, api_key)
    except UpstreamError as error:
        result.unavailable = error.kind
        return result
    for name in sorted(retired & observed):
        try:
            unload_adapter(base_url, name, api_key)
            result.unloaded.append(name)
        except UpstreamError as error:
            result.failed[name] = error.kind
    for name in sorted(desired.keys() - observed):
        try:
            load_adapter(base_url, name, desired[name], api_key)
            result.loaded.append(name)
        except UpstreamError as error:
            result.failed[name] = error.kind
    return result


def _request(method: str, base_url: str, path: str, api_key: str, body: Mapping[str, Any] | None = None) -> bytes:
    url = f"{base_url.rstrip('/').removesuffix('/v1')}/v1/{path}"
    with httpx_failures():
        response = httpx.request(
            method,
            url,
            content=orjson.dumps(body) if body is not None else None,
            headers=request_headers(api_key),
            timeout=TIMEOUT,
            trust_env=False,
        )
    return checked(base_url, api_key, response.status_code, response.headers, response.content)


def _json(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise bad_response() from None

"""Two handlers behind one ASGI application: ``/v1`` on the slim one, everything else on the full Django stack."""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ratchet_project.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from gateway.handler import SlimHandler  # noqa: E402 - needs the app registry
from gateway.runtime import shutdown, startup  # noqa: E402

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

v1_application = SlimHandler()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Dispatch by path; start and stop the gateway with the server."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif scope["type"] == "http" and (scope["path"] == "/v1" or scope["path"].startswith("/v1/")):
        await v1_application(scope, receive, send)
    else:
        await django_application(scope, receive, send)  # type: ignore[arg-type]


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                startup()
            except Exception as error:  # noqa: BLE001 - the server must report why it cannot start
                await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
                return
        elif message["type"] == "lifespan.shutdown":
            await shutdown()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": f"{message['type']}.complete"})

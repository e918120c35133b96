"""Where requests part: the console and health belong to Django, everything else to the Table service."""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django: Any = get_asgi_application()  # sets Django up, which the service's models need

from console import static_files  # noqa: E402
from storage.protocol.app import TableService  # noqa: E402
from storage.protocol.call import Rules  # noqa: E402

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

service = TableService(
    Rules(
        conninfo=settings.LANES_CONNINFO,
        host_suffixes=settings.HOST_SUFFIXES,
        bearer=settings.BEARER,
        key_length_limit=settings.TABLERO_KEY_LENGTH_LIMIT,
    )
)
static = static_files.StaticFiles(development=settings.DEVELOPMENT)
HOST_SUFFIXES = tuple(f".{suffix}".encode() for suffix in settings.HOST_SUFFIXES)


def application(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
    if scope["type"] == "lifespan":
        return _live(receive, send)
    path: str = scope["path"]
    if (path in {"/", "/ui"} or path.startswith("/ui/")) and not _names_an_account(scope):
        if path.startswith(static_files.PREFIX):
            return static(scope, receive, send)
        return cast("Awaitable[None]", django(scope, receive, send))
    return service(scope, receive, send)


def _names_an_account(scope: Scope) -> bool:
    """Host style: ACCOUNT.SUFFIX, where the account owns every path."""
    if not HOST_SUFFIXES:
        return False
    host: bytes = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return host.partition(b":")[0].lower().endswith(HOST_SUFFIXES)


async def _live(receive: Receive, send: Send) -> None:
    await receive()
    await service.startup()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await service.shutdown()
    await send({"type": "lifespan.shutdown.complete"})

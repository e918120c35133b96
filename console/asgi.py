"""Where requests part: the console and health belong to Django, everything else to the Table service."""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.db import connection

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

django: Application = get_asgi_application()


def table_service() -> Any:
    try:
        from storage.protocol.app import TableService
    except ModuleNotFoundError:
        return None
    return TableService()


service = table_service()
HOST_SUFFIXES = tuple(f".{suffix}".encode() for suffix in settings.HOST_SUFFIXES)


def application(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
    if scope["type"] == "http":
        path: str = scope["path"]
        if (path == "/" or path.startswith("/ui/")) and not _names_an_account(scope):
            return django(scope, receive, send)
        return service(scope, receive, send)  # type: ignore[no-any-return]
    return _lifespan(receive, send)


def _names_an_account(scope: Scope) -> bool:
    """Host style: ACCOUNT.SUFFIX, where the account owns the whole path."""
    if not HOST_SUFFIXES:
        return False
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return host.partition(b":")[0].lower().endswith(HOST_SUFFIXES)


async def _lifespan(receive: Receive, send: Send) -> None:
    await receive()
    if service:
        await service.startup()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    if service:
        await service.shutdown()
    connection.close_pool()
    await send({"type": "lifespan.shutdown.complete"})

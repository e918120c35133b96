"""What an operator's probe asks: is the process alive, and can it serve."""

import asyncio
import math
from functools import cache
from time import monotonic
from typing import Final

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse

from storage.domain.errors import ServerBusy
from storage.operations.threads import in_thread

_STEADY: Final = 1.0  # seconds for which an answer holds: many who ask must not keep the database busy


# not in threads, of which Django would start one for each request


@login_not_required
async def alive(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "alive"})


@login_not_required
async def ready(request: HttpRequest) -> JsonResponse:
    reason = await _readiness.reason()
    if reason:
        return JsonResponse({"status": "unavailable", "reason": reason}, status=503)
    return JsonResponse({"status": "ready"})


class _Readiness:
    def __init__(self) -> None:
        self._reason = ""
        self._checked_at = -math.inf
        self._checking = asyncio.Lock()

    async def reason(self) -> str:
        """Why the process cannot serve; empty if it can."""
        async with self._checking:
            if monotonic() - self._checked_at > _STEADY:
                self._reason = await _check()
                self._checked_at = monotonic()
        return self._reason


async def _check() -> str:
    try:
        is_migrated = await in_thread(_is_migrated)
    except (DatabaseError, ServerBusy):
        return "The database cannot be reached."
    return "" if is_migrated else "The database is not migrated."


def _is_migrated() -> bool:
    return _migrations() <= set(MigrationRecorder(connection).applied_migrations())


@cache
def _migrations() -> frozenset[tuple[str, str]]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return frozenset(loader.graph.leaf_nodes())


_readiness: Final = _Readiness()

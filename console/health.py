"""What an operator's probe asks: is the process alive, and can it serve."""

from functools import cache

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse


@login_not_required
def alive(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "alive"})


@login_not_required
def ready(request: HttpRequest) -> JsonResponse:
    try:
        applied = set(MigrationRecorder(connection).applied_migrations())
    except DatabaseError:
        return JsonResponse(
            {"status": "unavailable", "reason": "The database cannot be reached."}, status=503
        )
    if not _migrations() <= applied:
        return JsonResponse({"status": "unavailable", "reason": "The database is not migrated."}, status=503)
    return JsonResponse({"status": "ready"})


@cache
def _migrations() -> frozenset[tuple[str, str]]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return frozenset(loader.graph.leaf_nodes())

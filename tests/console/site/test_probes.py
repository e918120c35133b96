"""The readiness probe and its cache, which limits queries of the database."""

import asyncio
import json

import pytest
from django.test import RequestFactory

from console.site import probes
from storage.health import database_version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def checks(monkeypatch):
    """Return a list with one item for each query of the database."""
    asked = []
    monkeypatch.setattr(probes, "_readiness", probes._Readiness())
    explain = probes._explain_version
    monkeypatch.setattr(probes, "_explain_version", lambda: asked.append(1) or explain())
    return asked


async def ready():
    answer = await probes.ready(RequestFactory().get("/ui/readyz"))
    return answer.status_code, json.loads(answer.content)["status"]


async def test_many_who_ask_have_the_database_asked_once(checks, monkeypatch):
    monkeypatch.setattr(probes, "_CACHED_FOR", 60)
    assert set(await asyncio.gather(*(ready() for _ in range(100)))) == {(200, "ready")}
    assert len(checks) == 1


async def test_asks_again_after_a_while(checks, monkeypatch):
    monkeypatch.setattr(probes, "_CACHED_FOR", 0)
    await ready()
    monkeypatch.setattr(database_version, "known_migrations", lambda: {("storage", "9999_of_tomorrow")})
    assert await ready() == (503, "unavailable")
    assert len(checks) == 2


async def test_not_ready_after_a_newer_version_upgraded_the_database(checks, monkeypatch):
    monkeypatch.setattr(probes, "_CACHED_FOR", 0)
    monkeypatch.setattr(
        database_version, "known_migrations", lambda: frozenset({("storage", "0001_initial")})
    )
    answer = await probes.ready(RequestFactory().get("/ui/readyz"))
    assert answer.status_code == 503
    assert json.loads(answer.content)["reason"].startswith(
        "A newer version of Tablero has upgraded the database"
    )

"""The readiness probe and its cache, which limits queries of the database."""

import asyncio
import json
import subprocess
import sys

import pytest
from django.test import RequestFactory

from console.site import probes
from storage.health import database_version
from storage.server.workers import ROOT, environment

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


ASK = """
import asyncio
import sys

from console import asgi
from django.conf import settings


async def ask(path):
    received = iter([{"type": "http.request"}])
    sent = []

    async def receive():
        return next(received, None) or await asyncio.Future()

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
    await asgi.application(scope, receive, send)
    return sent[0]["status"]


for path in ("/ui/healthz", "/ui/metrics"):
    print(asyncio.run(ask(path)), settings.ROOT_URLCONF in sys.modules)
"""


def test_probes_load_no_page():
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["200 False", "404 False"], done.stderr

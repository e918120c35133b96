"""Whether the process can serve, asked by more than the database should hear of."""

import asyncio
import json

import pytest
from django.test import RequestFactory

from console.site import health

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def checks(monkeypatch):
    """How often the database was asked."""
    asked = []
    monkeypatch.setattr(health, "_readiness", health._Readiness())
    is_migrated = health._is_migrated
    monkeypatch.setattr(health, "_is_migrated", lambda: asked.append(1) or is_migrated())
    return asked


async def ready():
    answer = await health.ready(RequestFactory().get("/ui/readyz"))
    return answer.status_code, json.loads(answer.content)["status"]


async def test_many_who_ask_have_the_database_asked_once(checks):
    assert set(await asyncio.gather(*(ready() for _ in range(100)))) == {(200, "ready")}
    assert len(checks) == 1


async def test_asks_again_after_a_while(checks, monkeypatch):
    monkeypatch.setattr(health, "_STEADY", 0)
    await ready()
    monkeypatch.setattr(health, "_migrations", lambda: {("storage", "9999_of_tomorrow")})
    assert await ready() == (503, "unavailable")
    assert len(checks) == 2

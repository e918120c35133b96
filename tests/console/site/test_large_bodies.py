"""Large bodies of requests to the console: their number and their time are limited."""

import asyncio

import pytest

from console import asgi
from storage.protocol import request_memory
from storage.protocol.request_memory import FACTOR, BodyBudget, memory


@pytest.fixture
def post():
    """`await post(path, receive)`: the messages of the answer to a form of a million bytes."""

    async def post(path, receive):
        sent = []

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"h"), (b"content-length", b"1000000")],
            "scheme": "http",
            "state": {"ending": asyncio.Event()},
        }
        await asgi.application(scope, receive, send)
        return sent

    return post


async def never():
    await asyncio.Event().wait()


async def test_waits_for_room(post, monkeypatch):
    monkeypatch.setattr(memory, "console", budget := BodyBudget(100_000 * FACTOR))
    monkeypatch.setattr(request_memory, "PATIENCE", 0)
    budget.take(70_000)

    head, body = await post("/ui/api/v1/accounts", never)

    assert head["status"] == 503
    assert (b"Retry-After", b"1") in head["headers"]
    assert b'"status": 503' in body["body"]


async def test_refuses_a_body_that_comes_too_slowly(post, monkeypatch):
    monkeypatch.setattr(asgi, "longest_arrival", lambda size: 0.0)

    head, body = await post("/ui/login/", never)

    assert (head["status"], body["body"]) == (408, b"")
    assert memory.console.used == 0

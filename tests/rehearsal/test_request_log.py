"""Rehearsed requests in the request log, and rehearsed failures left out of metrics."""

from types import SimpleNamespace

import pytest
from django.utils import timezone

from storage.metrics.last_day import last_day
from storage.protocol import rehearsal
from storage.requests import explanations
from storage.requests.requests import RequestClass, RequestFilter, find
from storage.runtime.threads import in_thread
from tests.rehearsal.rehearsing import asking, rehearsing, start, stop

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/people(PartitionKey='p',RowKey='{}')"
WAYS = [
    ("ambiguous-applied", "PUT", 500),
    ("ambiguous-unapplied", "PUT", 500),
    ("ambiguous-applied; answer=close", "PUT", 0),
    ("ambiguous-unapplied; answer=reset", "PUT", 0),
    ("cut-answer", "PUT", 0),
    ("cut-answer", "GET", 200),
    ("throttle", "GET", 503),
    ("clock-skew", "GET", 403),
    ("slow-answer", "GET", 200),
    ("short-page; empty=0.9", "GET", 200),
    ("delay; p50=20; p99=20", "PUT", 204),
]


async def kept(service, kind):
    await service._service.observer.flush()
    return await in_thread(lambda: list(find(RequestFilter(kind=kind)).order_by("pk")))


async def test_the_log_tells_what_a_rehearsal_did():
    async with rehearsing() as (service, send):
        assert (await send("POST", "/Tables", {"TableName": "people"})).status == 201
        assert (await send("PUT", PATH.format("r"), {"N": 1})).status == 204
        for number, (asked, method, _) in enumerate(WAYS):
            path, body = (PATH.format(number), {"N": 1}) if method == "PUT" else ("/people()", b"")
            await send(method, path, body, asking(asked))
        assert (await send("GET", PATH.format("none"), headers=asking("ambiguous-applied"))).status == 404
        rows = await kept(service, RequestClass.REHEARSED)
        problems = await kept(service, RequestClass.PROBLEM)
    assert [(it.status, it.fault["rehearsed"]["rules"]) for it in rows] == [
        (status, [asked.partition(";")[0]]) for asked, _, status in WAYS
    ]
    facts = [(it.fault["rehearsed"]["failure"], it.fault["rehearsed"]["applied"]) for it in rows]
    assert facts == [
        (True, True), (True, False), (True, True), (True, False), (True, True), (True, None), (True, None),
        (True, None), (False, None), (False, None), (False, True),
    ]  # fmt: skip
    assert [it.status for it in problems] == [404]
    told = [" ".join(explanations.explain(it)) for it in rows]
    failed = "The rehearsal made this request fail: "
    assert told[2] == f"{failed}ambiguous-applied. The write was committed, but the client was not told."
    assert told[3] == f"{failed}ambiguous-unapplied. The write was not committed."
    assert told[6] == f"{failed}throttle."
    assert told[7] == f"{failed}clock-skew."
    assert told[10] == (
        "The rehearsal changed how this request was answered: delay. It waited 20 ms first, which are not part of its"
        " duration."
    )


async def test_metrics_leave_rehearsed_failures_and_delays_out(monkeypatch):
    async def pass_over(seconds):
        assert seconds == 60.0

    monkeypatch.setattr(rehearsal, "asyncio", SimpleNamespace(sleep=pass_over))
    async with rehearsing() as (service, send):
        assert (await send("POST", "/Tables", {"TableName": "people"})).status == 201
        started = await start(
            {"effect": "error", "when": {"nth": [1, 2, 3]}},
            {"effect": "ambiguous-applied", "answer": "close", "when": {"nth": [4]}},
            {"effect": "delay", "p50": 60_000, "p99": 60_000, "when": {"nth": [6]}},
        )
        for number in range(6):
            await send("PUT", PATH.format(number), {"N": 1})
        await stop(started)
        assert (await send("GET", PATH.format("none"))).status == 404
        rows = await kept(service, RequestClass.REHEARSED)
        day = await in_thread(last_day, started.account_id, timezone.now())
    assert (day.requests, day.refused, day.failed) == (4, 1, 0)
    assert (len(rows), rows[-1].seconds) == (5, 0.0)

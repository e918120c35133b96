"""The choice of faults: the same ones for the same requests, and those that the conditions of a rule name."""

import asyncio
import base64
import json
import time
from contextlib import AsyncExitStack
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from storage.domain.refusals import Refused
from storage.domain.values.kinds import AccountKind
from storage.models import Account, Rehearsal, RehearsalClient, RehearsalRate, RehearsedRequest
from storage.rehearsal import rehearsals, rehearser
from storage.rehearsal.chance import name_client
from storage.rehearsal.rules import dump_rules, read_rules
from storage.rehearsal.sets import READY
from storage.runtime.threads import in_thread
from storage.sql import rehearsals as sql
from tests.protocol.test_table_service import ACCOUNT, JSON, KEY, running, sender
from tests.rehearsal.rehearsing import MARK, asking, exchanges, rehearsing, start, stop
from tests.wire import tokens

pytestmark = pytest.mark.django_db(transaction=True)

ANY_FAILURE = [
    {"name": "busy", "effect": "throttle", "when": {"share": 0.2}},
    {
        "name": "applied",
        "effect": "ambiguous-applied",
        "answer": "any",
        "when": {"operations": ["writes"], "share": 0.3},
    },
    {"name": "page", "effect": "short-page", "when": {"every": 3}},
    {"name": "late", "effect": "error", "when": {"nth": [5, 11]}},
]


def key(row, partition="p"):
    return f"/people(PartitionKey='{partition}',RowKey='{row}')"


async def create(send, *names):
    for name in names or ("people",):
        assert (await send("POST", "/Tables", {"TableName": name})).status == 201


async def statuses(send, *requests, **headers):
    """Send requests one after the other, and return for each its status, or the rules that struck it."""
    answers = [
        await send(method, path, *body, headers={**JSON, **headers}) for method, path, *body in requests
    ]
    return [reply.headers.get(MARK, reply.status) for reply in answers]


def test_a_seed_means_the_same_on_every_machine():
    agents = (
        "azsdk-python-data-tables/12.7.0 Python/3.11.7 (Linux-6.12-x86_64-with-glibc2.36)",
        "azsdk-python-data-tables/13.0.0 Python/3.14.0 (macOS-26.0-arm64)",
    )
    assert {name_client(agent) for agent in agents} == {"azsdk-python-data-tables"}


async def test_the_same_requests_meet_the_same_faults_in_any_process():
    async with AsyncExitStack() as stack:
        _, send = await stack.enter_async_context(rehearsing())
        others = [await stack.enter_async_context(running()) for _ in range(2)]
        sends = [send, *map(sender, others)]
        await create(send)
        await send("PUT", key("r"), {"N": 1})

        async def client(run):
            """Send requests by a token of its own, each by another of the services."""
            fields = {"tn": "people", "sp": "raud", "se": f"2099-01-0{run + 1}T00:00:00Z"}
            token = urlencode(tokens.parameters({"sas": fields}, ACCOUNT, base64.b64encode(KEY).decode()))
            marks = []
            for number in range(60):
                method, path, body = [
                    ("PUT", key(number), {"N": number}), ("GET", "/people()", b""), ("GET", key("r"), b"")
                ][number % 3]  # fmt: skip
                headers = {**JSON, "User-Agent": "tested"}
                reply = await sends[(number + run) % 3](
                    method, f"{path}?{token}", body, headers, signed=False
                )
                marks.append((reply.headers.get(MARK), reply.status, bool(reply.deliver)))
            return marks

        async def neighbour(ended):
            while not ended.is_set():
                await sends[1]("GET", "/people()", headers={**JSON, "User-Agent": "other"})

        runs = []
        for run in range(3):
            started = await start(*ANY_FAILURE, seed=5 if run < 2 else 6)
            ended = asyncio.Event()
            beside = asyncio.create_task(neighbour(ended))
            runs.append(await client(run))
            ended.set()
            await beside
            await stop(started)
    assert runs[0] == runs[1] != runs[2]
    assert {mark for mark, *_ in runs[0]} == {None, "busy", "applied", "page", "late"}


async def test_requests_of_several_processes_are_counted_once():
    async with AsyncExitStack() as stack:
        _, send = await stack.enter_async_context(rehearsing())
        sends = [send, sender(await stack.enter_async_context(running()))]
        await create(send)
        for number in range(9):  # reads are charged for further entities, towards both rates
            await send("PUT", key(number, partition=number % 3), {"N": number})
        rates = [
            {"name": per, "effect": "throttle", "when": {"rate": 1e6, "per": per}}
            for per in ("partition", "account")
        ]
        started = await start(*rates)
        asked = [sends[n % 2]("GET", f"/people()?$filter=PartitionKey%20eq%20'{n % 3}'") for n in range(80)]
        assert {reply.status for reply in await asyncio.gather(*asked)} == {200}
        client = await in_thread(RehearsalClient.objects.get)
        numbers = await in_thread(lambda: sorted(started.requests.values_list("number", flat=True)))
    assert (client.requests, client.matches) == (80, [80, 80])
    assert numbers == list(range(1, 81))


async def test_conditions_choose_requests():
    async with rehearsing() as (_, send):
        await create(send, "people", "pets")
        requests = [
            ("PUT", key("1"), {"N": 1}),
            ("GET", key("1", "q")),
            ("GET", "/people()"),
            ("GET", "/pets()"),
            ("GET", "/people()?$filter=PartitionKey%20eq%20'q'%20and%20N%20gt%201"),
            ("POST", "/pets", {"PartitionKey": "q", "RowKey": "1"}),
        ]
        usual = [204, 404, 200, 200, 200, 201]
        struck = {
            (0, 5): {"operations": ["writes"]},
            (1, 2, 3, 4): {"operations": ["reads"]},
            (2, 3, 4): {"operations": ["QueryEntities"]},
            (0, 1, 2, 4): {"table": "PEOPLE"},
            (1, 4, 5): {"partition": "q"},
            (0,): {"key_from": "o", "key_before": "q"},
            (): {"agent": "other"},
            (0, 1, 2, 3, 4, 5): {"agent": "TEST", "credential": "key1"},
            (0, 2): {"nth": [1, 3]},
            (1, 3, 5): {"every": 2},
        }
        for places, when in struck.items():
            await in_thread(RehearsedRequest.objects.all().delete)
            started = await start({"name": "rule", "effect": "error", "when": when})
            given = await statuses(send, *requests, **{"User-Agent": "tests/1.0"})
            expected = ["rule" if place in places else status for place, status in enumerate(usual)]
            await stop(started)
            if 5 not in places:
                await send("DELETE", "/pets(PartitionKey='q',RowKey='1')", headers={**JSON, "If-Match": "*"})
            assert given == expected, when


async def test_a_rehearsal_of_a_table_leaves_others_alone():
    async with rehearsing() as (_, send):
        await create(send, "people", "pets")
        await start({"effect": "error"}, table="People")
        requests = [
            ("GET", "/people()"),
            ("GET", "/pets()"),
            ("GET", "/Tables"),
            ("POST", "/Tables", {"TableName": "x3y"}),
        ]
        assert await statuses(send, *requests) == ["error", 200, 200, 201]
        assert len(await exchanges()) == 1


async def test_names_of_tables_are_compared_as_in_the_account():
    async with rehearsing(AccountKind.COSMOS) as (_, send):
        await create(send, "People", "people", "my-pets")
        requests = [("GET", f"/{name}()") for name in ("People", "people", "my-pets")]
        for when, table, given in (
            ({"table": "People"}, "", ["error", 200, 200]),
            ({}, "People", ["error", 200, 200]),
            ({"table": "my-pets"}, "", [200, 200, "error"]),
            ({}, "my-pets", [200, 200, "error"]),
            ({"table": "no/table"}, "", [200, 200, 200]),
        ):
            started = await start({"effect": "error", "when": when}, table=table)
            assert await statuses(send, *requests) == given
            await stop(started)


async def test_a_client_with_many_names_is_not_told_apart_for_ever(monkeypatch):
    monkeypatch.setattr(sql, "_COUNT", sql._COUNT.replace(f">= {sql.CLIENTS}", ">= 2"))
    async with rehearsing() as (_, send):
        await start({"effect": "error", "when": {"nth": [2]}})
        answers = [await send("GET", "/Tables", headers={**JSON, "User-Agent": name}) for name in "abcda"]
        assert [answer.status for answer in answers] == [200, 200, 200, 500, 500]
        rows = await in_thread(lambda: list(RehearsalClient.objects.values_list("agent", "requests")))
        assert sorted(rows) == [("a", 2), ("b", 1), ("…", 2)]
        assert len(await exchanges()) == 3


async def test_rates_throttle_what_exceeds_them():
    entity = {"PartitionKey": "p", "N": 1}
    async with rehearsing() as (_, send):
        await create(send)
        rule = {"effect": "throttle", "retry_after": 2, "when": {"rate": 500, "per": "partition"}}
        started = await start(rule, scale=0.0002)  # an entity in ten seconds
        replies = [await send("POST", "/people", {**entity, "RowKey": str(n)}) for n in range(3)]
        assert [reply.status for reply in replies] == [201, 503, 503]
        assert (replies[1].error, replies[1].headers["Retry-After"]) == ("ServerBusy", "2")
        other = await send("POST", "/people", {**entity, "PartitionKey": "q", "RowKey": "1"})
        assert other.status == 201
        assert (await send("GET", "/people()")).status == 200  # counts for no partition
        await stop(started)
        assert [it["retry_after"] for it in await exchanges(started) if "retry_after" in it] == [2, 2]


async def test_a_request_is_charged_for_the_entities_that_it_reads():
    async with rehearsing() as (_, send):
        await create(send)
        for row in range(4):
            await send("PUT", key(row), {"N": 1})
        await start({"effect": "throttle", "when": {"rate": 4, "per": "table"}}, scale=0.001)
        assert await statuses(send, ("GET", "/people()"), ("GET", "/people()")) == [200, "throttle"]


async def test_a_cosmos_account_answers_as_cosmos():
    async with rehearsing(AccountKind.COSMOS) as (_, send):
        busy = await send("GET", "/Tables", headers=asking("throttle; retry_after=0.25"))
        late = await send("GET", "/Tables", headers=asking("ambiguous-applied"))
    assert (busy.status, busy.headers["x-ms-retry-after-ms"]) == (429, "250")
    assert (busy.json["odata.error"]["code"], "Retry-After" in busy.headers) == ("429", False)
    assert (late.status, late.json["odata.error"]["code"]) == (408, "RequestTimeout")


MALFORMED = (
    "", ";", "unknown", "delay; p50=x", "delay; p50=-1", "delay; p50=nan", "delay; p50=inf", "delay; other=1",
    "throttle, throttle", "late-policies", "ambiguous-applied; answer=yes", "delay; when=1", "error; effect",
)  # fmt: skip


async def test_a_malformed_wish_is_refused_before_anything_is_done():
    async with rehearsing() as (_, send):
        await create(send)
        for asked in MALFORMED:
            refused = await send("PUT", key("r"), {"N": 1}, asking(asked))
            assert (refused.status, MARK in refused.headers) == (400, False), asked
            assert refused.error == "InvalidHeaderValue"
        assert (await send("GET", key("r"))).status == 404


def test_delays_have_an_end():
    rules = [{"name": str(n), "effect": "delay", "p50": 60_000, "p99": 60_000} for n in range(3)]
    fault = rehearser._make_fault([(rule, lambda purpose: 0.5) for rule in read_rules(rules)])
    assert fault.delay == 60


def test_policies_are_late_for_a_table_or_all():
    read_rules([{"effect": "late-policies", "when": {"table": "people"}}])
    with pytest.raises(Refused, match=r"when\.share"):
        read_rules([{"effect": "late-policies", "when": {"share": 0.5}}])


@pytest.mark.parametrize("settings", [{"may_rehearse": False}, {"protected": True}])
async def test_nothing_is_rehearsed_without_permission(settings):
    async with rehearsing(**settings) as (_, send):
        with pytest.raises(Refused):
            await start({"effect": "error"})
        await in_thread(_force_rehearsal)
        assert (await send("GET", "/Tables", headers=asking("error"))).status == 200
        assert (await send("GET", "/Tables", headers=asking("nonsense"))).status == 200
        assert await exchanges() == []


def _force_rehearsal():
    account, now = Account.objects.get(name=ACCOUNT), rehearsals.timezone.now()
    Rehearsal.objects.create(
        account=account, set_name="own", rules=[{"effect": "error"}], seed=1, started_at=now,
        ends_at=now + timedelta(hours=1), started_by={},
    )  # fmt: skip


async def test_a_rehearsal_ends_by_itself():
    async with rehearsing() as (_, send):
        started = await start({"effect": "error"}, duration=timedelta(seconds=1))
        assert (await send("GET", "/Tables")).status == 500
        await asyncio.sleep(max(0.0, started.ends_at.timestamp() - time.time()))
        assert (await send("GET", "/Tables")).status == 200
        assert len(await exchanges()) == 1


async def test_refused_requests_are_counted_without_a_fault():
    async with rehearsing() as (_, send):
        started = await start({"effect": "error"})
        assert (await send("GET", "/people()", key=b"x" * 64)).status == 403
        assert (await send("GET", "/people()", signed=False)).status == 403
        recorded = await exchanges(started)
    assert [(it["status"], it["error"], "rules" in it) for it in recorded] == [
        (403, "AuthenticationFailed", False), (403, "AuthenticationFailed", False),
    ]  # fmt: skip


async def test_any_text_of_a_client_can_be_recorded():
    async with rehearsing() as (_, send):
        await start({"effect": "short-page"})
        for name in ("\ud800", "a\0", "\\u0000", "'"):
            assert (await send("POST", "/Tables", {"TableName": name})).status == 400
        for path in ("/people(PartitionKey='%00',RowKey='%F0%9F%98%80')", "/people()?$filter=N%20eq%20'%00'"):
            headers = {**JSON, "User-Agent": "\xff" * 3000}
            assert (await send("GET", path, headers=headers)).status in (400, 404)
        assert len(await exchanges()) == 6


async def test_rules_of_a_newer_version_are_no_rehearsal():
    async with rehearsing():
        started = await start({"effect": "error"})
        await in_thread(Rehearsal.objects.filter(pk=started.pk).update, rules=[{"effect": "of tomorrow"}])
        async with running() as newly_started:
            assert (await sender(newly_started)("GET", "/Tables")).status == 200


def test_sets_survive_their_json():
    for one in READY.values():
        assert read_rules(json.loads(json.dumps(dump_rules(one.rules)))) == one.rules


async def test_old_rehearsals_are_deleted_and_the_rates_of_ended_ones():
    async with rehearsing() as (_, send):
        started = await start({"effect": "throttle", "when": {"rate": 100}})
        assert (await send("GET", "/Tables")).status == 200
        await in_thread(rehearsals.tidy, started.started_at)
        assert await in_thread(RehearsalRate.objects.count) == 1
        await in_thread(rehearsals.tidy, started.ends_at + timedelta(minutes=1))
        left = await in_thread(lambda: [it.objects.count() for it in (RehearsalRate, RehearsedRequest)])
        assert left == [0, 1]
        await in_thread(rehearsals.tidy, started.ends_at + rehearsals.KEPT + timedelta(minutes=1))
        assert await in_thread(RehearsedRequest.objects.count) == 0

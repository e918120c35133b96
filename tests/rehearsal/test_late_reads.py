"""The secondary is behind, changed policies hold late, and the server's clock is ahead."""

import base64
import json
import time
from datetime import timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from storage.accounts import account_settings
from storage.models import Account
from storage.protocol import rehearsal
from storage.rehearsal import rehearser
from storage.runtime import rehearsed_service
from storage.runtime.threads import in_thread
from tests.protocol.test_table_service import ACCOUNT, JSON, KEY
from tests.rehearsal.rehearsing import MARK, asking, exchanges, rehearsing, start, stop
from tests.wire import tokens

pytestmark = pytest.mark.django_db(transaction=True)

LAG = 120.0
STATS = "/?restype=service&comp=stats"


@pytest.fixture
def clock(monkeypatch):
    """Return a function that lets the secondary have reached a moment, in seconds since 1970."""
    then = SimpleNamespace(moment=0.0)
    monkeypatch.setattr(rehearsed_service, "time", SimpleNamespace(time=lambda: then.moment + LAG))

    def reach(moment):
        then.moment = moment

    return reach


def reader(send):
    """Return a function that reads by the secondary address."""

    async def read(path, headers=JSON):
        return await send("GET", f"/{ACCOUNT}-secondary{path}", headers=headers, host="127.0.0.1:10002")

    return read


def policy(identifier, permissions="r"):
    return (
        f"<SignedIdentifier><Id>{identifier}</Id><AccessPolicy><Expiry>2099-01-01T00:00:00Z</Expiry>"
        f"<Permission>{permissions}</Permission></AccessPolicy></SignedIdentifier>"
    )


async def set_policies(send, *written, table="people"):
    body = f"<SignedIdentifiers>{''.join(written)}</SignedIdentifiers>".encode()
    headers = {"Content-Type": "application/xml"}
    assert (await send("PUT", f"/{table}?comp=acl", body, headers)).status == 204


async def test_the_secondary_shows_the_account_as_it_was(clock):
    moments = []

    async def do(method, path, body=b"", headers=JSON):
        reply = await send(method, path, body, headers)
        assert reply.status < 300, reply
        moments.append(time.time())
        while time.time() <= moments[-1] + 0.001:  # later changes have later times
            pass

    entity = "/people(PartitionKey='p',RowKey='r')"
    async with rehearsing() as (_, send):
        read = reader(send)
        moments.append(time.time())  # 0: no table
        await do("POST", "/Tables", {"TableName": "people"})  # 1
        await do("PUT", entity, {"N": 1})  # 2
        await set_policies(send, policy("reader"))
        await do("PUT", entity, {"N": 2})  # 3
        await do("DELETE", entity, headers={**JSON, "If-Match": "*"})  # 4
        await set_policies(send)
        await do("DELETE", "/Tables('people')")  # 5
        await do("POST", "/Tables", {"TableName": "people"})  # 6
        await do("PUT", entity, {"N": 3})  # 7
        started = await start({"name": "lag", "effect": "stale-secondary", "lag": LAG})
        expected = [
            (404, None, [], 404),
            (404, [], ["people"], b""),
            (200, [1], ["people"], b""),
            (200, [2], ["people"], b"reader"),
            (404, [], ["people"], b"reader"),
            (404, None, [], 404),
            (404, [], ["people"], b""),
            (200, [3], ["people"], b""),
        ]
        for moment, (status, numbers, names, policies) in zip(moments, expected, strict=True):
            clock(moment)
            assert (await read(entity)).status == status
            page = (await read("/people()?$filter=N%20gt%200")).json
            assert ([it["N"] for it in page["value"]] if "value" in page else None) == numbers
            assert [it["TableName"] for it in (await read("/Tables")).json["value"]] == names
            assert (await read("/Tables('people')")).status == (200 if names else 404)
            acl = await read("/people?comp=acl")
            assert acl.status == policies if policies == 404 else policies in acl.body
            stats = await read(STATS)
            text = stats.body.partition(b"<LastSyncTime>")[2].partition(b"<")[0].decode()
            assert parsedate_to_datetime(text).timestamp() == int(moment)
            assert stats.headers[MARK] == "lag"
        clock(moments[0])
        primary = await send("GET", entity)
        assert (primary.json["N"], MARK in primary.headers) == (3, False)
        clock(0)  # before the account
        assert (await read(entity)).error == "TableNotFound"
        assert (await read("/Tables")).json["value"] == []
        await stop(started)
        assert (await read(entity)).json["N"] == 3
        recorded = await exchanges(started)
    assert {it.get("lag", 0.0) for it in recorded if it.get("secondary")} == {LAG}


async def test_what_is_not_in_the_history_is_read_as_it_is(clock):
    async with rehearsing(history_days=0) as (_, send):
        assert (await send("POST", "/Tables", {"TableName": "people"})).status == 201
        assert (await send("PUT", "/people(PartitionKey='p',RowKey='r')", {"N": 1})).status == 204
        clock(time.time())
        path, asked = "/people(PartitionKey='p',RowKey='r')", asking(f"stale-secondary; lag={LAG:g}")
        assert (await reader(send)(path, asked)).json["N"] == 1
        clock(0)
        assert (await reader(send)(path, asked)).error == "TableNotFound"
        # the primary has no lag, also if it is asked for
        assert (await send("GET", path, headers=asked)).json["N"] == 1


async def test_policies_hold_late(monkeypatch):
    clock = SimpleNamespace(now=timezone.now)
    async with rehearsing() as (_, send):
        assert (await send("POST", "/Tables", {"TableName": "people"})).status == 201
        await set_policies(send, policy("kept"), policy("revoked"), policy("widened", "a"))
        between = timezone.now()
        await set_policies(send, policy("kept"), policy("widened", "r"), policy("new"))
        assert await _readable(send) == ["kept", "new", "widened"]
        started = await start({"name": "late", "effect": "late-policies", "seconds": 120})
        monkeypatch.setattr(rehearser, "timezone", clock)
        for seconds, names in ((119, []), (120, ["kept", "revoked"]), (300, ["kept", "new", "widened"])):
            clock.now = partial(between.__add__, timedelta(seconds=seconds))
            assert await _readable(send) == names
        clock.now = partial(between.__add__, timedelta(seconds=120))
        await stop(started)
        assert await _readable(send) == ["kept", "new", "widened"]
        await start({"effect": "late-policies", "seconds": 120, "when": {"table": "others"}})
        assert await _readable(send) == ["kept", "new", "widened"]


async def _readable(send):
    """Return the policies whose tokens may read."""
    names = []
    for name in ("kept", "new", "revoked", "widened"):
        fields = {"tn": "people", "si": name, "se": False}
        token = tokens.parameters({"sas": fields}, ACCOUNT, base64.b64encode(KEY).decode())
        reply = await send("GET", f"/people()?{urlencode(token)}", signed=False)
        assert reply.status in (200, 403)
        names += [name] if reply.status == 200 else []
    return names


async def test_a_clock_that_is_ahead_refuses_keys_and_tokens():
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 600))
    token = {"tn": "people", "sp": "r", "se": soon}
    token = urlencode(tokens.parameters({"sas": token}, ACCOUNT, base64.b64encode(KEY).decode()))
    async with rehearsing() as (_, send):
        assert (await send("POST", "/Tables", {"TableName": "people"})).status == 201
        skewed, slight = asking("clock-skew; minutes=20"), asking("clock-skew; minutes=5")
        by_key = await send("GET", "/people()", headers=skewed)
        assert (by_key.error, by_key.headers[MARK]) == ("AuthenticationFailed", "clock-skew")
        by_token = await send("GET", f"/people()?{token}", headers=skewed, signed=False)
        assert (by_token.error, by_token.headers[MARK]) == ("AuthenticationFailed", "clock-skew")
        for reply in (
            await send("GET", "/people()", headers=slight),
            await send("GET", f"/people()?{token}", headers=slight, signed=False),
        ):
            assert (reply.status, MARK in reply.headers) == (200, False)
        behind = asking("clock-skew; minutes=-20")
        written = await send("POST", "/people", {"PartitionKey": "p", "RowKey": "r"}, behind)
        assert written.status == 403
        assert json.loads((await send("GET", "/people()")).body)["value"] == []


async def test_access_is_checked_again_after_a_delay(monkeypatch):
    async with rehearsing() as (_, send):
        assert (await send("POST", "/Tables", {"TableName": "people"})).status == 201
        account = await in_thread(Account.objects.get, name=ACCOUNT)

        async def disable(seconds):
            await in_thread(account_settings.change, account, enabled=False)

        monkeypatch.setattr(rehearsal, "asyncio", SimpleNamespace(sleep=disable))
        reply = await send("GET", "/people()", headers=asking("delay"))
        assert (reply.error, reply.headers[MARK]) == ("AccountIsDisabled", "delay")

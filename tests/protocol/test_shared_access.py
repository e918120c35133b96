"""Tokens from outside become known by their use, and a blocked one is refused by every process at once."""

import asyncio
import base64
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from storage.domain.access.actor import SERVER
from storage.models import Account
from storage.operations import sas
from storage.operations.threads import in_thread
from tests.protocol import test_app
from tests.protocol.test_app import ACCOUNT, JSON, KEY, call, running
from tests.wire import tokens

pytestmark = pytest.mark.django_db(transaction=True)

KEY_TEXT = base64.b64encode(KEY).decode()

service, send = test_app.service, test_app.send


@pytest.fixture
async def token(send):
    """A token made elsewhere, for a table that is there."""
    assert (await send("POST", "/Tables", {"TableName": "People"})).status == 201
    spec = {"sas": {"tn": "People", "sp": "r"}}
    return tokens.parameters(spec, ACCOUNT, KEY_TEXT)


async def query(service, token):
    fields = [(name.lower().encode(), value.encode()) for name, value in JSON.items()]
    path, query = f"/{ACCOUNT}/People".encode(), urlencode(token).encode()
    return await call(service, "GET", path, query, [(b"host", b"127.0.0.1:10002"), *fields], [])


def known():
    return sas.known(Account.objects.get(name=ACCOUNT), timezone.now())


async def seen(is_wanted):
    """The one token, as soon as it is as it should be, which it is within five seconds."""
    for _ in range(50):
        found = await in_thread(known)
        if found and is_wanted(found[0]):
            return found[0]
        await asyncio.sleep(0.1)
    raise AssertionError("that took too long")


async def test_s3_a_foreign_token_is_seen_within_five_seconds(service, token):
    assert await in_thread(known) == []
    assert (await query(service, token)).status == 200
    found = await seen(lambda known: True)
    assert (found.is_registered, found.key, found.uses) == (False, 1, 1)
    assert (await query(service, token)).status == 200
    again = await seen(lambda known: known.last_used > found.last_used)
    assert again.uses == 2


async def test_s4_blocking_makes_it_fail_at_once_everywhere(service, token):
    other_token = token | {"sig": "none"}
    async with running() as other:
        for process in (service, other):
            assert (await query(process, token)).status == 200
        found = await seen(lambda known: True)
        account = await in_thread(Account.objects.get, name=ACCOUNT)
        for blocked in (True, False):
            await in_thread(
                lambda blocked=blocked: sas.set_blocked(
                    account, found.fingerprint, blocked=blocked, by=SERVER
                )
            )
            for process in (service, other):
                reply = await query(process, token)
                assert reply.status == (403 if blocked else 200)
                if blocked:
                    assert reply.error == "AuthenticationFailed"
                    # nothing is told of a token whose signature is wrong
                    assert b"blocked" not in (await query(process, other_token)).body


async def test_s4_other_tokens_and_the_keys_stay_good(service, send, token):
    assert (await query(service, token)).status == 200
    found = await seen(lambda known: True)
    account = await in_thread(Account.objects.get, name=ACCOUNT)
    await in_thread(lambda: sas.set_blocked(account, found.fingerprint, blocked=True, by=SERVER))
    spec = {"sas": {"tn": "People", "sp": "ra"}}
    another = tokens.parameters(spec, ACCOUNT, KEY_TEXT)
    assert (await query(service, another)).status == 200
    assert (await send("GET", "/People")).status == 200
    assert (await query(service, token)).status == 403

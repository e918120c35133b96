"""Tokens from outside become known by their use, and a blocked one is refused by every process at once."""

import base64
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from storage.access import sas
from storage.domain.access.actor import SERVER
from storage.models import Account
from storage.runtime.threads import in_thread
from tests.protocol import test_table_service
from tests.protocol.test_table_service import ACCOUNT, JSON, KEY, call, running
from tests.wire import tokens

pytestmark = pytest.mark.django_db(transaction=True)

KEY_TEXT = base64.b64encode(KEY).decode()

service, send = test_table_service.service, test_table_service.send


@pytest.fixture
async def token(send):
    """Return a token made elsewhere for an existing table."""
    assert (await send("POST", "/Tables", {"TableName": "People"})).status == 201
    spec = {"sas": {"tn": "People", "sp": "r"}}
    return tokens.parameters(spec, ACCOUNT, KEY_TEXT)


async def query(service, token):
    fields = [(name.lower().encode(), value.encode()) for name, value in JSON.items()]
    path, query = f"/{ACCOUNT}/People".encode(), urlencode(token).encode()
    return await call(service, "GET", path, query, [(b"host", b"127.0.0.1:10002"), *fields], [])


def known():
    return sas.known(Account.objects.get(name=ACCOUNT), timezone.now())


async def seen(service):
    """Return the one token, after the process has written its observations."""
    await service._service.observer.flush()
    (found,) = await in_thread(known)
    return found


async def test_a_foreign_token_becomes_known_by_its_use(service, token):
    assert await in_thread(known) == []
    assert (await query(service, token)).status == 200
    result = await seen(service)
    assert (result.is_registered, result.key, result.uses) == (False, 1, 1)
    assert (await query(service, token)).status == 200
    again = await seen(service)
    assert (again.uses, again.last_used > result.last_used) == (2, True)


async def test_s4_blocking_makes_it_fail_at_once_everywhere(service, token):
    other_token = token | {"sig": "none"}
    async with running() as other:
        for process in (service, other):
            assert (await query(process, token)).status == 200
        result = await seen(service)
        account = await in_thread(Account.objects.get, name=ACCOUNT)
        for blocked in (True, False):
            await in_thread(
                lambda blocked=blocked: sas.set_blocked(
                    account, result.fingerprint, blocked=blocked, by=SERVER
                )
            )
            for process in (service, other):
                reply = await query(process, token)
                assert reply.status == (403 if blocked else 200)
                if blocked:
                    assert reply.error == "AuthenticationFailed"
                    # an answer reveals nothing about a token whose signature is wrong
                    assert b"blocked" not in (await query(process, other_token)).body


async def test_s4_other_tokens_and_the_keys_stay_good(service, send, token):
    assert (await query(service, token)).status == 200
    result = await seen(service)
    account = await in_thread(Account.objects.get, name=ACCOUNT)
    await in_thread(lambda: sas.set_blocked(account, result.fingerprint, blocked=True, by=SERVER))
    spec = {"sas": {"tn": "People", "sp": "ra"}}
    another = tokens.parameters(spec, ACCOUNT, KEY_TEXT)
    assert (await query(service, another)).status == 200
    assert (await send("GET", "/People")).status == 200
    assert (await query(service, token)).status == 403

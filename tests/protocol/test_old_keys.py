"""Keys that were replaced: refused at once, or accepted for a while, by signature and by token."""

from datetime import timedelta
from email.utils import formatdate

import pytest

from storage.access import retired_keys
from storage.accounts import accounts, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.domain import sas
from storage.domain.access.signature import SignedRequest, sign
from storage.domain.sas import TableSas
from storage.models import Activity, CredentialUse, RetiredKey
from storage.runtime.threads import in_thread
from storage.tables import tables
from tests.protocol.test_table_service import ACCOUNT, KEY, call, service  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
TOKEN = TableSas(version="2019-02-02", table="people", permissions="r", expiry="2099-01-01")


@pytest.fixture
async def ask(service):  # noqa: F811
    """`await ask(key)`: what two requests get, one signed with the key and one by a token of it."""

    async def by_key(key):
        headers = {b"host": b"localhost:10002", b"x-ms-date": formatdate(usegmt=True).encode()}
        headers[b"x-ms-version"] = b"2019-02-02"
        path = f"/{ACCOUNT}/people".encode()
        header = sign(SignedRequest("GET", path, b"", headers, ACCOUNT), key)
        fields = [*headers.items(), (b"authorization", header)]
        return await call(service, "GET", path, b"", fields, [b""])

    async def by_token(key):
        query = sas.write(sas.sign(TOKEN, ACCOUNT, key)).encode()
        fields = [(b"host", b"localhost:10002"), (b"x-ms-version", b"2019-02-02")]
        return await call(service, "GET", f"/{ACCOUNT}/people".encode(), query, fields, [b""])

    async def ask(key):
        return [(await by_key(key)).status, (await by_token(key)).status]

    account = await in_thread(accounts.find, ACCOUNT)
    await in_thread(tables.create, account, "people")
    return ask


async def test_an_old_key_is_refused_at_once(ask):
    assert await ask(KEY) == [200, 200]
    await in_thread(accounts.rotate, ACCOUNT, 1)
    assert await ask(KEY) == [403, 403]


async def test_k2_an_old_key_is_accepted_until_its_grace_is_over(ask, monkeypatch):
    account = await in_thread(lambda: accounts.rotate(ACCOUNT, 1, grace=HOUR))
    assert await ask(KEY) == [200, 200]
    new, second = await in_thread(sealed_keys.keys_of, account)
    assert await ask(new) == await ask(second) == [200, 200]
    until = (await in_thread(retired_keys.accepted, account))[0].until
    # the process's copy of the key stays the same; only time passes
    monkeypatch.setattr("storage.protocol.authorization.time", lambda: until - 1)
    assert (await ask(KEY))[1] == 200
    monkeypatch.setattr("storage.protocol.authorization.time", lambda: until)
    assert (await ask(KEY))[1] == 403
    assert (await ask(new))[1] == 200


async def test_k2_a_grace_period_can_be_ended_early(ask):
    account = await in_thread(lambda: accounts.rotate(ACCOUNT, 1, grace=HOUR))
    assert await ask(KEY) == [200, 200]
    assert await in_thread(retired_keys.end, account, 1)
    assert await ask(KEY) == [403, 403]


async def test_two_old_keys_of_a_number_are_accepted_side_by_side(ask):
    account = await in_thread(lambda: accounts.rotate(ACCOUNT, 1, grace=HOUR))
    between, _ = await in_thread(sealed_keys.keys_of, account)
    await in_thread(lambda: accounts.rotate(ACCOUNT, 1, grace=HOUR))
    assert await ask(KEY) == await ask(between) == [200, 200]


async def test_a_key_replaced_at_once_takes_those_before_it_along(ask):
    account = await in_thread(lambda: accounts.rotate(ACCOUNT, 2, grace=HOUR))
    await in_thread(lambda: accounts.rotate(ACCOUNT, 1, grace=HOUR))
    between, second = await in_thread(sealed_keys.keys_of, account)
    await in_thread(accounts.rotate, ACCOUNT, 1)
    assert await ask(KEY) == await ask(between) == [403, 403]
    assert await ask(second) == [200, 200]


async def test_uses_of_an_old_key_are_recorded(service, ask):  # noqa: F811
    await ask(KEY)
    await in_thread(lambda: accounts.rotate(ACCOUNT, 1, grace=HOUR))
    await ask(KEY)
    await service._service.observer.flush()

    uses = CredentialUse.objects.filter(authentication="authenticated")
    names = await in_thread(lambda: set(uses.values_list("name", flat=True)))
    assert names == {"key1", "key1 (old)"}


async def test_an_old_key_is_kept_sealed_and_for_a_month(ask):
    account = await in_thread(lambda: accounts.rotate(ACCOUNT, 1, grace=HOUR))

    def look():
        (retired,) = retired_keys.for_account(account)
        assert KEY not in bytes(retired.sealed)
        assert [key for _, key in retired_keys.opened_of(account, [retired])] == [KEY]
        done = Activity.objects.latest("pk")
        assert done.detail == {"key": "key1", "accepted_until": retired.accepted_until.isoformat()}
        month = retired.accepted_until + retired_keys.RETENTION
        retired_keys.tidy(month)
        assert RetiredKey.objects.count() == 1
        retired_keys.tidy(month + timedelta(seconds=1))
        assert RetiredKey.objects.count() == 0

    await in_thread(look)


async def test_the_key_that_everybody_knows_has_no_grace_where_it_must_not_be_used(ask, settings):
    def rotate():
        account = accounts.add("devs", NewAccount(sealed_keys.DEVELOPMENT_KEY))
        accounts.rotate("devs", 1, grace=HOUR)
        return [key.key for key in retired_keys.accepted(account)]

    assert await in_thread(rotate) == [sealed_keys.DEVELOPMENT_KEY]
    settings.DEVELOPMENT_ACCOUNT_ALLOWED = False
    account = await in_thread(accounts.find, "devs")
    assert await in_thread(retired_keys.accepted, account) == ()

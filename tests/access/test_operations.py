"""Registered tokens: which are known, to whom they belong, and which are refused; no signature is stored."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from storage.access import policies, retired_keys
from storage.access import sas as sas_operations
from storage.access.sas import Refusal, SasDescription, SasRefused
from storage.access.subject import AccessVerb
from storage.accounts import accounts, removal, sealed_keys
from storage.activity.undoing import CannotUndo
from storage.domain import sas
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.errors import ResourceNotFound, ServerBusy
from storage.domain.requests.metrics import CredentialClient, UseCount
from storage.domain.requests.observed import Authentication
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import TokenState, token_state
from storage.metrics import usage
from storage.metrics.last_day import hour_of
from storage.metrics.usage import Uses
from storage.models import Activity, BlockedSas, RegisteredSas, SeenCredential
from storage.tables import tables
from storage.undo import undo

pytestmark = pytest.mark.django_db(transaction=True)

BY = Actor(ActorKind.USER, "max")
TOKEN = TableSas(version="2019-02-02", table="Orders", permissions="r", expiry="2099-01-01T00:00:00Z")
WHOLE = AccountSas(
    version="2019-02-02", services="t", resource_types="co", permissions="r", expiry="2099-01-01T00:00:00Z"
)


@pytest.fixture
def account():
    account = accounts.add("acme")
    tables.create(account, "Orders")
    return account


def use(account, token, count=1, *, ago=timedelta(0)):
    """Record uses of a token that another client signed with key1."""
    signed = sas.sign(token, account.name, sealed_keys.keys_of(account)[0])
    moment = timezone.now() - ago
    uses = Uses("one")
    client = CredentialClient(account.pk, Authentication.SAS, sas.fingerprint(signed), "192.0.2.1", "sdk")
    parameters = sas.to_parameters(signed)
    uses.add(hour_of(moment), client, UseCount(count, moment), parameters)
    uses.write()
    return client.credential


def known(account):
    return sas_operations.known(account, timezone.now())


def standing(account, fingerprint):
    token = sas_operations.find(account, fingerprint, timezone.now())
    return token_state(token, sas_operations.policies_of(account), timezone.now())


def issue(account, token=TOKEN, key=1, label="partner demo"):
    return sas_operations.issue(account, token, key, SasDescription(label, "shows", "eve"), by=BY)


def test_issues_and_knows_it(account):
    issued = issue(account, key=2)
    assert sas.find_signing_key(issued.token, "acme", sealed_keys.keys_of(account)) == 1
    done = Activity.objects.get(verb=AccessVerb.SAS_ISSUE)
    assert (done.actor, done.table_name) == ("max", "Orders")
    assert done.detail == {
        "fingerprint": issued.fingerprint, "label": "partner demo", "kind": "table", "key": "key2",
    }  # fmt: skip
    SeenCredential.objects.create(
        account=account, authentication=Authentication.SAS, name="f" * 64, parameters=[["sv", "nonsense"]],
        first_used_at=timezone.now(), last_used_at=timezone.now(), address="", agent="",
    )  # fmt: skip
    (registered,) = known(account)
    assert (registered.token, registered.fingerprint, registered.label) == (
        TOKEN,
        issued.fingerprint,
        "partner demo",
    )
    assert (registered.purpose, registered.owner, registered.author) == ("shows", "eve", "max")
    assert (registered.is_registered, registered.is_blocked, registered.key) == (True, False, 2)
    assert (registered.last_used, registered.uses) == (None, 0)
    assert registered.created is not None
    # issuing the same token again only renames it
    issue(account, key=2, label="another")
    assert [token.label for token in known(account)] == ["another"]


def test_s2_the_signature_is_nowhere_in_the_database(account):
    issued = issue(account)
    use(account, TOKEN)
    sas_operations.set_blocked(account, issued.fingerprint, blocked=True, by=BY)
    for model in (RegisteredSas, Activity, BlockedSas, SeenCredential):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT to_jsonb(t)::text FROM {model._meta.db_table} t")
            rows = "".join(row for (row,) in cursor.fetchall())
        assert issued.fingerprint in rows
        assert issued.token.signature not in rows
        assert issued.token.signature.replace("/", "\\/") not in rows


def test_joins_what_was_made_with_what_was_used(account):
    made = issue(account).fingerprint
    other = use(account, replace(TOKEN, permissions="ra"), 3)
    assert use(account, TOKEN, 5) == made
    first, second = known(account)
    assert (first.fingerprint, first.uses, first.is_registered, first.address) == (made, 5, True, "192.0.2.1")
    assert (second.fingerprint, second.uses, second.is_registered) == (other, 3, False)
    assert (second.created, second.author, second.key) == (None, "", 1)


def test_registered_tokens_stay_listed_after_many_other_uses(account, monkeypatch):
    monkeypatch.setattr(sas_operations, "_SEEN", 1)
    made = issue(account).fingerprint
    use(account, TOKEN, 5, ago=timedelta(minutes=5))
    other = use(account, replace(TOKEN, permissions="ra"))
    use(account, replace(TOKEN, permissions="a"), ago=timedelta(minutes=9))
    assert [(token.fingerprint, token.uses) for token in known(account)] == [(made, 5), (other, 1)]


def test_a_replaced_key_that_is_still_accepted_keeps_its_tokens_until_it_ends(account):
    fingerprint, second = issue(account).fingerprint, issue(account, key=2).fingerprint
    accounts.rotate("acme", 1, grace=timedelta(hours=1))
    account.refresh_from_db()
    result = sas_operations.find(account, fingerprint, timezone.now())
    assert result.key == 1
    assert timedelta(minutes=59) < result.key_ends - timezone.now() <= timedelta(hours=1)
    assert standing(account, fingerprint) is TokenState.EXPIRES_SOON
    retired_keys.end(account, 1)
    assert standing(account, fingerprint) is TokenState.REVOKED
    assert standing(account, second) is TokenState.ACTIVE


def test_does_not_make_what_would_be_refused(account):
    policies.replace_by_name(account, "orders", [SignedIdentifier("partner", AccessPolicy(None, None, "r"))])
    for token, reason in [
        (replace(TOKEN, table="Nothing"), Refusal.NO_TABLE),
        (replace(TOKEN, identifier="none"), Refusal.NO_POLICY),
        (replace(TOKEN, permissions=""), Refusal.CONFLICTING),
        (replace(TOKEN, expiry=""), Refusal.CONFLICTING),
        (replace(TOKEN, identifier="partner"), Refusal.CONFLICTING),
        (replace(TOKEN, permissions="x"), Refusal.MALFORMED),
        (replace(TOKEN, start_row="1"), Refusal.MALFORMED),
        (replace(WHOLE, expiry=""), Refusal.MALFORMED),
    ]:
        with pytest.raises(SasRefused) as refused:
            issue(account, token)
        assert refused.value.reason is reason, (token, reason)
        assert known(account) == [], (token, reason)


# notes


def test_a_seen_token_is_adopted_and_given_up(account):
    fingerprint = use(account, TOKEN)
    done = sas_operations.describe(account, fingerprint, SasDescription("cron"), by=BY)
    assert sas_operations.describe(account, fingerprint, SasDescription("cron"), by=BY) is None
    SeenCredential.objects.all().delete()
    (registered,) = known(account)
    assert (registered.label, registered.is_registered, registered.created, registered.author) == (
        "cron",
        True,
        None,
        "",
    )
    assert registered.token == TOKEN
    changed = sas_operations.describe(account, fingerprint, SasDescription("other"), by=BY)
    assert known(account)[0].label == "other"
    undo.undo(changed, BY)
    assert known(account)[0].label == "cron"
    undo.undo(done, BY)
    assert known(account) == []


def test_nothing_is_noted_of_what_is_not_known_or_gone(account):
    fingerprint = use(account, TOKEN)

    def change(fingerprint):
        yield lambda: sas_operations.describe(account, fingerprint, SasDescription("x"), by=BY)
        yield lambda: sas_operations.set_blocked(account, fingerprint, blocked=True, by=BY)

    for attempt in change("f" * 64):
        with pytest.raises(ResourceNotFound):
            attempt()
    removal.remove("acme", with_tables=True)
    for attempt in (*change(fingerprint), lambda: issue(account, WHOLE)):
        with pytest.raises(ServerBusy):
            attempt()


# blocking


def test_blocks_unblocks_and_undoes(account):
    fingerprint = issue(account).fingerprint
    done = sas_operations.set_blocked(account, fingerprint, blocked=True, by=BY)
    assert standing(account, fingerprint) is TokenState.BLOCKED
    assert sas_operations.set_blocked(account, fingerprint, blocked=True, by=BY) is None
    back = undo.undo(done, BY)
    assert standing(account, fingerprint) is TokenState.ACTIVE
    undo.undo(back, BY)
    assert standing(account, fingerprint) is TokenState.BLOCKED
    sas_operations.set_blocked(account, fingerprint, blocked=False, by=BY)
    with pytest.raises(CannotUndo):
        undo.undo(done, BY)


def test_a_blocked_token_stays_known_though_nobody_can_use_it(account):
    fingerprint = use(account, TOKEN, ago=timedelta(days=100))
    other = use(account, replace(TOKEN, permissions="a"), ago=timedelta(days=100))
    sas_operations.set_blocked(account, fingerprint, blocked=True, by=BY)
    usage.tidy(timezone.now())
    assert [token.fingerprint for token in known(account)] == [fingerprint]
    assert sas_operations.find(account, other, timezone.now()) is None


# tokens that expire soon


def test_says_which_expire_soon(account):
    now = timezone.now()

    def ends(token=TOKEN, **after):
        return replace(token, expiry=(now + timedelta(**after)).strftime("%Y-%m-%dT%H:%M:%SZ"))

    in_two_days = ends(days=2).expiry.replace("Z", ".0000000Z")
    policies.replace_by_name(account, "orders", [SignedIdentifier("p", AccessPolicy(None, in_two_days, "r"))])
    near = issue(account, ends(days=3)).fingerprint
    seen = use(account, ends(hours=5))
    named = issue(account, TableSas(version="2019-02-02", table="Orders", identifier="p")).fingerprint
    issue(account, ends(days=8))
    use(account, ends(days=-1))
    blocked = issue(account, ends(days=1)).fingerprint
    sas_operations.set_blocked(account, blocked, blocked=True, by=BY)
    other = accounts.add("other")
    assert sas_operations.expiring([account], now) == []  # each has just begun
    RegisteredSas.objects.update(created_at=now - timedelta(days=60))  # so that little of their lives is left
    SeenCredential.objects.update(first_used_at=now - timedelta(days=60))
    result = sas_operations.expiring([account, other], now)
    assert {token.fingerprint for _, token, _ in result} == {near, seen, named}
    assert sas_operations.expiring([other], now) == sas_operations.expiring([], now) == []

"""State and permissions, as codes, of a token whose fingerprint alone is stored."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from storage.domain import sas
from storage.domain.access.grants import Operation
from storage.domain.access.policies import AccessPolicy
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.explain import KeyLimits, Meaning, explain, list_abilities, summarize
from storage.domain.sas.known import KnownToken, TokenState, token_state

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TOKEN = TableSas(version="2019-02-02", table="Orders", permissions="r", expiry="2027-11-21T12:00:00Z")
NAMING = TableSas(version="2019-02-02", table="Orders", identifier="partner")
ACCOUNT = AccountSas(
    version="2019-02-02", services="t", resource_types="sco", permissions="rl", expiry="2027-11-21T12:00:00Z"
)
POLICY = AccessPolicy(None, "2027-01-01T00:00:00.0000000Z", "ra")


def standing(token, policies=None, now=NOW, **known):
    return token_state(KnownToken("f" * 64, token, **{"key": 1, **known}), policies or {}, now)


@pytest.mark.parametrize(
    ("token", "policy", "expected"),
    [
        (TOKEN, None, TokenState.ACTIVE),
        (ACCOUNT, None, TokenState.ACTIVE),
        (replace(TOKEN, expiry="2026-11-28T12:00:00Z"), None, TokenState.EXPIRES_SOON),
        (replace(TOKEN, expiry="2026-11-28T12:00:01Z"), None, TokenState.ACTIVE),
        (replace(TOKEN, expiry="2026-11-21T12:00:00Z"), None, TokenState.EXPIRED),
        (replace(TOKEN, start="2026-11-21T12:00:01Z"), None, TokenState.NOT_YET_VALID),
        (replace(TOKEN, start="2026-11-21T12:00:00Z"), None, TokenState.ACTIVE),
        (replace(TOKEN, expiry=""), None, TokenState.CONFLICTING),
        (NAMING, None, TokenState.ORPHANED),
        (NAMING, POLICY, TokenState.ACTIVE),
        (replace(NAMING, table="ORDERS"), POLICY, TokenState.ACTIVE),
        (replace(NAMING, table="other"), POLICY, TokenState.ORPHANED),
        (replace(NAMING, permissions="r"), POLICY, TokenState.CONFLICTING),
        (NAMING, AccessPolicy(None, None, "r"), TokenState.CONFLICTING),
        (replace(NAMING, expiry="2027-11-21"), AccessPolicy(None, "", "r"), TokenState.ACTIVE),
        (NAMING, replace(POLICY, expiry="2026-11-20T00:00:00.0000000Z"), TokenState.EXPIRED),
    ],
)
def test_states(token, policy, expected):
    policies = {"orders": {"partner": policy}} if policy else {}
    assert standing(token, policies) is expected
    # a blocked token, or one without a valid signature, is that also before it becomes valid
    assert standing(token, policies, key=None, is_blocked=True) is TokenState.BLOCKED
    assert standing(token, policies, key=None) is TokenState.REVOKED


@pytest.mark.parametrize("begun", ["created", "first_used"])
def test_a_short_life_warns_in_its_last_tenth(begun):
    day = replace(TOKEN, expiry="2026-11-22T12:00:00Z")
    assert standing(day, **{begun: NOW}) is TokenState.ACTIVE
    assert standing(day, **{begun: NOW - timedelta(days=8)}) is TokenState.ACTIVE
    assert standing(day, **{begun: NOW - timedelta(days=9)}) is TokenState.EXPIRES_SOON
    started = replace(day, start="2026-11-21T00:00:00Z")
    assert standing(started, **{begun: NOW - timedelta(days=9)}) is TokenState.ACTIVE


def test_tokens_of_a_replaced_key_last_its_grace_period():
    hour = timedelta(hours=1)
    assert standing(TOKEN, key_ends=NOW + hour) is TokenState.EXPIRES_SOON
    assert standing(TOKEN, key_ends=NOW) is TokenState.REVOKED
    assert standing(replace(TOKEN, start="2026-11-22"), key_ends=NOW + hour) is TokenState.NOT_YET_VALID


def test_is_recognized_by_its_fingerprint_alone():
    print_ = sas.fingerprint(sas.sign(TOKEN, "acme", b"b" * 64))
    find = sas.find_key_by_fingerprint
    assert find(TOKEN, print_, "acme", [b"a" * 64, b"b" * 64]) == 1
    assert find(TOKEN, print_, "acme", [b"a" * 64]) is None
    assert find(TOKEN, print_, "other", [b"b" * 64]) is None
    assert find(replace(TOKEN, permissions="ra"), print_, "acme", [b"b" * 64]) is None


def test_parameters_and_back():
    for token in (TOKEN, NAMING, ACCOUNT):
        assert sas.from_parameters((*sas.to_parameters(token), ("key", "key1"))) == token
    assert sas.from_parameters([("sv", "2019-02-02"), ("tn", "Orders"), ("sp", "raudx")]) is None
    assert sas.from_parameters([]) is None


# in codes


def test_explains_each_parameter():
    results = {it.name: it for it in explain([*sas.to_parameters(TOKEN), ("sig", "x"), ("timeout", "5")])}
    assert [(name, it.meaning) for name, it in results.items()] == [
        ("sv", Meaning.VERSION),
        ("tn", Meaning.TABLE),
        ("sp", Meaning.PERMISSIONS),
        ("se", Meaning.EXPIRY),
        ("sig", Meaning.SIGNATURE),
        ("timeout", Meaning.UNKNOWN),
    ]
    assert results["sp"].letters == ("r",)
    assert all(it.is_well_formed for it in results.values())


@pytest.mark.parametrize(
    "pair",
    [("sp", "rx"), ("se", "tomorrow"), ("sip", "10.0.0.0/8"), ("spr", "http"), ("srt", "o"), ("st", "1")],
)
def test_explains_malformed_parameters(pair):
    results = {it.name: it.is_well_formed for it in explain([("sv", "2019-02-02"), ("tn", "Orders"), pair])}
    assert results == {"sv": True, "tn": True, pair[0]: False}


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("r", (Operation.QUERY_ENTITIES,)),
        ("au", (Operation.INSERT_ENTITY, Operation.UPDATE_ENTITY, Operation.INSERT_OR_REPLACE_ENTITY)),
        ("d", (Operation.DELETE_ENTITY,)),
        ("", ()),
    ],
)
def test_abilities_of_a_table_token(letters, expected):
    assert list_abilities(TOKEN, AccessPolicy(None, None, letters)) == expected


@pytest.mark.parametrize(
    ("levels", "letters", "expected"),
    [
        ("o", "rl", (Operation.QUERY_ENTITIES,)),
        ("c", "rl", (Operation.QUERY_TABLES,)),
        ("c", "wd", (Operation.CREATE_TABLE, Operation.DELETE_TABLE)),
        ("o", "wd", (Operation.DELETE_ENTITY,)),
        ("s", "rw", (Operation.GET_SERVICE_PROPERTIES, Operation.SET_SERVICE_PROPERTIES)),
    ],
)
def test_abilities_of_an_account_token(levels, letters, expected):
    token = replace(ACCOUNT, resource_types=levels, permissions=letters)
    assert list_abilities(token, AccessPolicy(None, None, letters)) == expected
    assert list_abilities(replace(token, services="b"), AccessPolicy(None, None, letters)) == ()


def test_the_whole():
    token = replace(TOKEN, protocol="https", address="10.0.0.1", start_partition="A", end_partition="F")
    summary = summarize(token, AccessPolicy(None, "1970-01-01T00:00:01Z", "r"))
    assert (summary.table, summary.keys) == ("Orders", KeyLimits("A", "", "F", ""))
    assert (summary.start, summary.expiry) == (None, 10_000_000)
    assert (summary.is_https_only, summary.address) == (True, "10.0.0.1")

"""Validity of a token, alone and with a stored access policy: times, permissions, addresses and tables."""

from dataclasses import replace

import pytest

from storage.domain import sas
from storage.domain.access.grants import ALL_ENTITIES, GrantKind, Permission, Resource
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import (
    AuthenticationFailed,
    AuthorizationProtocolMismatch,
    AuthorizationServiceMismatch,
    AuthorizationSourceIPMismatch,
)
from storage.domain.sas import AccountSas, TableSas

NOON = 1_798_804_800.0  # 2027-01-01T12:00:00Z
TOKEN = TableSas("2019-02-02", "People", "r", expiry="2028-01-01")
ACCOUNT = AccountSas("2019-02-02", "t", "o", "r", expiry="2028-01-01")


def grant(token, policy=None, *, now=NOON, scheme="http", address="127.0.0.1"):
    return sas.authorize(token, policy, now=now, scheme=scheme, address=address)


def detail(token, policy=None, **request):
    with pytest.raises(AuthenticationFailed) as refused:
        grant(token, policy, **request)
    return refused.value.details["AuthenticationErrorDetail"]


def test_a_table_token_grants_its_permissions_on_its_table():
    granted = grant(replace(TOKEN, permissions="rd"))
    assert granted.kind is GrantKind.TABLE_SAS
    assert granted.permissions == Permission.READ | Permission.DELETE
    assert granted.resources == Resource.OBJECT
    assert granted.table == "people"
    assert granted.keys == ALL_ENTITIES
    assert not granted.legacy


def test_an_account_token_grants_its_permissions_on_its_levels():
    granted = grant(replace(ACCOUNT, resource_types="sc", permissions="rwdlacuxpf"))
    assert granted.kind is GrantKind.ACCOUNT_SAS
    assert granted.permissions == ~Permission.NONE
    assert granted.resources == Resource.SERVICE | Resource.CONTAINER
    assert granted.table is None


def test_a_token_of_before_2015_04_05_is_refused_in_the_old_way():
    assert grant(replace(TOKEN, version="2015-02-21")).legacy
    assert not grant(replace(TOKEN, version="2015-04-05")).legacy


# time


@pytest.mark.parametrize("token", [TOKEN, ACCOUNT])
@pytest.mark.parametrize(
    ("start", "expiry", "is_good"),
    [
        ("", "2027-01-01T12:00:00.0000010Z", True),
        ("2027-01-01T13:00:00+01:00", "2028-01-01", True),
        ("0001-01-01T00:00:00Z", "2028-01-01", True),
        ("", "2027-01-01T12:00:00Z", False),
        ("", "2027-01-01", False),
        ("", "0001-01-01", False),
        ("2027-01-01T12:00:00.0000010Z", "2028-01-01", False),
        ("2028-01-01", "2026-01-01", False),
    ],
)
def test_is_valid_from_start_to_expiry(token, start, expiry, is_good):
    token = replace(token, start=start, expiry=expiry)
    if is_good:
        assert grant(token)
    else:
        assert "Current [Fri, 01 Jan 2027 12:00:00 GMT]" in detail(token)


def test_the_refusal_names_the_times():
    assert detail(replace(TOKEN, start="2028-02-29T10:00Z", expiry="9999-12-31")) == (
        "Signature not valid in the specified time frame: Start [Tue, 29 Feb 2028 10:00:00 GMT] - "
        "Expiry [Fri, 31 Dec 9999 00:00:00 GMT] - Current [Fri, 01 Jan 2027 12:00:00 GMT]"
    )


# address

ADDRESSES = [
    ("10.0.0.1", ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1:4711", "[::ffff:10.0.0.1]:80"], ["10.0.0.2", "::1", ""]),
    ("10.0.0.9-10.0.1.2", ["10.0.0.9", "10.0.0.255", "10.0.1.2"], ["10.0.0.8", "10.0.1.3", "9.255.255.255", "::a"]),
    ("10.0.0.9-10.0.0.1", [], ["10.0.0.1", "10.0.0.5", "10.0.0.9"]),
    ("2001:db8::1", ["2001:db8::1", "2001:DB8:0::1", "[2001:db8::1]:80", "2001:db8::1%eth0"], ["2001:db8::2"]),
    ("fe80::-fe80::ff", ["fe80::7%eth0", "fe80::ff"], ["fe80::100", "10.0.0.1"]),
    ("::ffff:10.0.0.1", ["10.0.0.1"], ["10.0.0.2", "::1"]),
    ("0.0.0.0-255.255.255.255", ["127.0.0.1", "0.0.0.0"], ["::1", "unknown", "10.0.0.1, 10.0.0.2"]),
]  # fmt: skip


@pytest.mark.parametrize(("allowed", "inside", "outside"), ADDRESSES)
def test_the_address_is_in_the_range(allowed, inside, outside):
    token = replace(TOKEN, address=allowed)
    for address in inside:
        assert grant(token, address=address)
    for address in outside:
        with pytest.raises(AuthorizationSourceIPMismatch):
            grant(token, address=address)


def test_the_refusal_quotes_only_addresses():
    with pytest.raises(AuthorizationSourceIPMismatch, match="using this source IP unknown"):
        grant(replace(TOKEN, address="10.0.0.1"), address="<script>")


# service


def test_checks_time_then_protocol_then_address_then_service():
    token = replace(ACCOUNT, services="b", address="10.0.0.1", protocol="https", expiry="2020-01-01")
    with pytest.raises(AuthenticationFailed):
        grant(token)
    with pytest.raises(AuthorizationProtocolMismatch):
        grant(token, now=0)
    with pytest.raises(AuthorizationSourceIPMismatch):
        grant(token, now=0, scheme="https")
    with pytest.raises(AuthorizationServiceMismatch):
        grant(token, now=0, scheme="https", address="10.0.0.1")


# policies


def test_a_policy_supplies_omitted_terms():
    bare = replace(TOKEN, permissions="", expiry="", identifier="readers")
    policy = AccessPolicy("2026-01-01T00:00:00.0000000Z", "2028-01-01T00:00:00.0000000Z", "ar")
    assert grant(bare, policy).permissions == Permission.READ | Permission.ADD
    deleting = grant(replace(bare, permissions="d"), replace(policy, permission=None))
    assert deleting.permissions is Permission.DELETE
    assert grant(replace(bare, expiry="2028-01-01"), replace(policy, expiry=""))
    assert grant(replace(TOKEN, identifier="readers"), AccessPolicy("", "", ""))
    assert "Start [" in detail(bare, replace(policy, start="2027-06-01T00:00:00.0000000Z"))
    for missing in ("permissions", "expiry"):
        text = detail(replace(TOKEN, identifier="readers", **{missing: ""}), AccessPolicy("", None, ""))
        assert text == "Missing mandatory parameters for valid Shared Access Signature."


@pytest.mark.parametrize("term", ["permission", "expiry", "start"])
def test_nothing_stands_in_both(term):
    token = replace(TOKEN, start="2026-01-01", identifier="readers")
    assert detail(token, AccessPolicy(**{term: "2028-01-01T00:00:00.0000000Z"})) == (
        "Access policy fields can be associated with signature or SAS identifier but not both."
    )

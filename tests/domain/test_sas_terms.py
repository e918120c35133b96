"""When, how, from where and for what a token is good, alone and with a stored access policy."""

from dataclasses import replace

import pytest

from storage.domain import sas
from storage.domain.access.grants import ALL_ENTITIES, GrantKind, Permission, Resource
from storage.domain.access.policies import AccessPolicy
from storage.domain.entities.entity import EntityKey
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


@pytest.mark.parametrize(
    ("version", "legacy"), [("2012-02-12", True), ("2015-02-21", True), ("2015-04-05", False)]
)
def test_a_token_of_before_2015_04_05_is_refused_in_the_old_way(version, legacy):
    assert grant(replace(TOKEN, version=version)).legacy is legacy


# time


@pytest.mark.parametrize("token", [TOKEN, ACCOUNT])
@pytest.mark.parametrize(
    ("start", "expiry"),
    [
        ("", "2027-01-01T12:00:01Z"),
        ("", "2027-01-01T12:01Z"),
        ("", "2027-01-02"),
        ("", "2027-01-01T12:00:00.0000010Z"),
        ("2027-01-01T12:00:00Z", "2028-01-01"),
        ("2027-01-01", "2028-01-01"),
        ("2027-01-01T13:00:00+01:00", "2028-01-01"),
        ("0001-01-01T00:00:00Z", "2028-01-01"),
    ],
)
def test_is_good_from_its_start_until_its_expiry(token, start, expiry):
    assert grant(replace(token, start=start, expiry=expiry))


@pytest.mark.parametrize("token", [TOKEN, ACCOUNT])
@pytest.mark.parametrize(
    ("start", "expiry"),
    [
        ("", "2027-01-01T12:00:00Z"),
        ("", "2027-01-01T11:59:59.9999999Z"),
        ("", "2027-01-01"),
        ("", "0001-01-01"),
        ("2027-01-01T12:00:01Z", "2028-01-01"),
        ("2027-01-01T12:00:00.0000010Z", "2028-01-01"),
        ("2028-01-01", "2026-01-01"),
    ],
)
def test_is_not_good_before_and_after(token, start, expiry):
    text = detail(replace(token, start=start, expiry=expiry))
    assert text.startswith("Signature not valid in the specified time frame: Start [")
    assert text.endswith("Current [Fri, 01 Jan 2027 12:00:00 GMT]")


def test_the_years_before_1601_of_a_policy_are_past():
    token = replace(TOKEN, expiry="", identifier="readers")
    ancient, never = "0001-01-01T00:00:00.0000000Z", "9999-12-31T23:59:59.9999999Z"
    assert grant(token, AccessPolicy(ancient, never))
    detail(token, AccessPolicy(ancient, ancient))


def test_the_refusal_names_the_times():
    assert detail(replace(TOKEN, start="2028-02-29T10:00Z", expiry="9999-12-31")) == (
        "Signature not valid in the specified time frame: Start [Tue, 29 Feb 2028 10:00:00 GMT] - "
        "Expiry [Fri, 31 Dec 9999 00:00:00 GMT] - Current [Fri, 01 Jan 2027 12:00:00 GMT]"
    )


# protocol


@pytest.mark.parametrize("token", [TOKEN, ACCOUNT])
def test_https_alone_is_no_http(token):
    token = replace(token, protocol="https")
    assert grant(token, scheme="https")
    with pytest.raises(AuthorizationProtocolMismatch):
        grant(token, scheme="http")


@pytest.mark.parametrize("protocol", ["", "https,http", "http,https"])
def test_both_protocols_are_either(protocol):
    assert grant(replace(TOKEN, protocol=protocol), scheme="http")
    assert grant(replace(TOKEN, protocol=protocol), scheme="https")


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


@pytest.mark.parametrize(
    ("allowed", "address"), [(allowed, address) for allowed, found, _ in ADDRESSES for address in found]
)
def test_the_address_is_in_the_range(allowed, address):
    assert grant(replace(TOKEN, address=allowed), address=address)
    assert grant(replace(ACCOUNT, address=allowed), address=address)


@pytest.mark.parametrize(
    ("allowed", "address"), [(allowed, address) for allowed, _, refused in ADDRESSES for address in refused]
)
def test_the_address_is_not_in_the_range(allowed, address):
    for token in (TOKEN, ACCOUNT):
        with pytest.raises(AuthorizationSourceIPMismatch):
            grant(replace(token, address=allowed), address=address)


@pytest.mark.parametrize(
    ("address", "told"),
    [("10.0.0.2:80", "10.0.0.2"), ("::ffff:10.0.0.2", "10.0.0.2"), ("<script>", "unknown")],
)
def test_the_refusal_names_the_address(address, told):
    with pytest.raises(AuthorizationSourceIPMismatch) as refused:
        grant(replace(TOKEN, address="10.0.0.1"), address=address)
    assert refused.value.text == (
        f"This request is not authorized to perform this operation using this source IP {told}."
    )


# service


@pytest.mark.parametrize("services", ["b", "q", "f", "bqf"])
def test_an_account_token_for_other_services_is_none_for_tables(services):
    with pytest.raises(AuthorizationServiceMismatch):
        grant(replace(ACCOUNT, services=services))


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


def test_a_policy_supplies_what_the_token_leaves_out():
    bare = replace(TOKEN, permissions="", expiry="", identifier="readers")
    policy = AccessPolicy("2026-01-01T00:00:00.0000000Z", "2028-01-01T00:00:00.0000000Z", "ar")
    assert grant(bare, policy).permissions == Permission.READ | Permission.ADD
    assert (
        grant(replace(bare, permissions="d"), replace(policy, permission=None)).permissions
        is Permission.DELETE
    )
    assert grant(replace(bare, expiry="2028-01-01"), replace(policy, expiry=""))
    assert grant(replace(bare, start="2026-01-01"), replace(policy, start=""))
    assert "Start [" in detail(bare, replace(policy, start="2027-06-01T00:00:00.0000000Z"))
    assert "Start []" in detail(bare, replace(policy, start=None, expiry="2026-06-01T00:00:00.0000000Z"))


@pytest.mark.parametrize(
    "policy",
    [
        AccessPolicy(permission="r"),
        AccessPolicy(permission="a"),
        AccessPolicy(expiry="2028-01-01T00:00:00.0000000Z"),
        AccessPolicy(start="2026-01-01T00:00:00.0000000Z"),
    ],
)
def test_nothing_stands_in_both(policy):
    token = replace(TOKEN, start="2026-01-01", identifier="readers")
    assert detail(token, policy) == (
        "Access policy fields can be associated with signature or SAS identifier but not both."
    )


@pytest.mark.parametrize("policy", [None, AccessPolicy(), AccessPolicy("", "", "")])
@pytest.mark.parametrize("missing", ["permissions", "expiry"])
def test_nothing_is_missing_in_both(policy, missing):
    token = replace(TOKEN, identifier="readers", **{missing: ""})
    assert detail(token, policy) == "Missing mandatory parameters for valid Shared Access Signature."


def test_an_empty_policy_leaves_all_to_the_token():
    assert grant(replace(TOKEN, identifier="readers"), AccessPolicy("", "", ""))
    assert grant(replace(TOKEN, identifier="readers"), AccessPolicy())


# key ranges

BOUNDED = [
    (("b", "", "", ""), ["b", "c"], ["a", ""], [("b", ""), ("b", "z")], []),
    (("b", "5", "", ""), ["c"], ["a"], [("b", "5"), ("b", "50"), ("b", "6")], [("b", "4~"), ("b", "")]),
    (("", "", "b", ""), ["a", "", "b"], ["b ", "ba", "c"], [("b", "~😀")], []),
    (("", "", "b", "5"), ["a"], ["c", "b "], [("b", ""), ("b", "5")], [("b", "5 "), ("b", "50"), ("b", "6")]),
    (("b", "5", "b", "5"), [], ["a", "c"], [("b", "5")], [("b", "4"), ("b", "5 ")]),
    (("c", "", "b", ""), [], ["a", "b", "c", "d"], [], []),
    (("é", "", "é", ""), ["é"], ["e", "ê", "e\u0301"], [], []),
]


@pytest.mark.parametrize(("bounds", "inside", "outside", "keys_inside", "keys_outside"), BOUNDED)
def test_covers_the_keys_between_its_bounds(bounds, inside, outside, keys_inside, keys_outside):
    token = replace(
        TOKEN,
        **dict(zip(("start_partition", "start_row", "end_partition", "end_row"), bounds, strict=True)),
    )
    covers = grant(token).keys.covers
    for key in [*((partition, "5") for partition in inside), *keys_inside]:
        assert covers(EntityKey(*key)), key
    for key in [*((partition, "5") for partition in outside), *keys_outside]:
        assert not covers(EntityKey(*key)), key

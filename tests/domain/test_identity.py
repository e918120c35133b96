from itertools import pairwise

import pytest

from storage.domain.access.grants import ROLES, Operation
from storage.domain.access.identity import grant_for_roles, is_loopback, is_safe_url, read_roles
from storage.domain.errors import AuthorizationPermissionMismatch

READER, CONTRIBUTOR, OWNER = ROLES


@pytest.mark.parametrize("role", ROLES)
def test_a_role_grants(role):
    assert grant_for_roles([role], "account1") == ROLES[role]


@pytest.mark.parametrize(
    "role",
    [
        "StorageTableDataReader",
        "Storage.Table.Data.Reader",
        "storage-table-data-reader",
        "STORAGE_TABLE_DATA_READER",
    ],
)
def test_an_issuer_may_not_allow_spaces_in_a_role(role):
    assert grant_for_roles([role], "account1") == ROLES[READER]


def test_the_strongest_role_counts():
    assert grant_for_roles([CONTRIBUTOR, "other", READER], "account1") == ROLES[CONTRIBUTOR]
    assert grant_for_roles([READER, OWNER, CONTRIBUTOR], "account1") == ROLES[OWNER]


def test_stronger_roles_allow_what_weaker_ones_do():
    for weaker, stronger in pairwise(ROLES):
        for operation in Operation:
            assert not ROLES[weaker].allows(operation) or ROLES[stronger].allows(operation)


@pytest.mark.parametrize("account", ["account2", "Account1", "account", "", "account1@"])
def test_a_role_for_one_account_is_none_for_another(account):
    role = f"{CONTRIBUTOR}@account1"
    assert grant_for_roles([role], "account1") == ROLES[CONTRIBUTOR]
    assert grant_for_roles([role], account) == grant_for_roles([], account)


@pytest.mark.parametrize(
    "roles", [[], [""], ["@account1"], ["Reader"], [f"{READER}@"], [f"{READER}x"], ["\N{KELVIN SIGN}"]]
)
def test_without_a_role_nothing_is_permitted(roles):
    found = grant_for_roles(roles, "account1")
    for operation in (Operation.QUERY_ENTITIES, Operation.CREATE_TABLE, Operation.GET_SERVICE_PROPERTIES):
        with pytest.raises(AuthorizationPermissionMismatch):
            found.check(operation)


@pytest.mark.parametrize(
    ("claims", "name", "expected"),
    [
        ({"roles": ["a", "b"]}, "roles", ("a", "b")),
        ({"roles": "a b"}, "roles", ("a b",)),
        ({"realm": {"roles": ["a"]}}, "realm.roles", ("a",)),
        ({"https://x.org/roles": ["a"]}, "https://x.org/roles", ("a",)),
        ({"a.b": ["c"], "a": {"b": ["d"]}}, "a.b", ("c",)),
        ({"roles": ["a", 5, None, ["b"]]}, "roles", ("a",)),
        ({"roles": {"a": 1}}, "roles", ()),
        ({"roles": 5}, "roles", ()),
        ({"realm": ["roles"]}, "realm.roles", ()),
        ({}, "realm.roles", ()),
        ({}, "roles", ()),
    ],
)
def test_reads_roles(claims, name, expected):
    assert read_roles(claims, name) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org/x", True),
        ("http://127.0.0.1:8080", True),
        ("http://[::1]/", True),
        ("http://localhost/x", True),
        ("http://example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://localhost.example.org", False),
        ("http://localhost@example.org", False),
        ("https://", False),
        ("https:example.org", False),
        ("https://[::1", False),
        ("ftp://example.org", False),
        ("file:///etc/passwd", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_which_urls_are_safe(url, expected):
    assert is_safe_url(url) is expected


def test_loopback():
    assert is_loopback("127.8.9.1")
    assert not is_loopback("0.0.0.0")

import pytest

from storage.domain.access.grants import ROLES, Operation
from storage.domain.access.identity import grant_for_roles, is_safe_url, read_roles
from storage.domain.errors import AuthorizationPermissionMismatch

READER, CONTRIBUTOR, OWNER = ROLES


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        *(([role], role) for role in ROLES),
        (["StorageTableDataReader"], READER),
        (["Storage.Table.Data.Reader"], READER),
        (["STORAGE_TABLE-data-reader"], READER),
        ([CONTRIBUTOR, "other", READER], CONTRIBUTOR),
        ([READER, OWNER, CONTRIBUTOR], OWNER),
    ],
)
def test_the_strongest_role_applies_in_any_spelling(roles, expected):
    assert grant_for_roles(roles, "account1") == ROLES[expected]


def test_a_role_applies_to_its_account_only():
    role = f"{CONTRIBUTOR}@account1"
    assert grant_for_roles([role], "account1") == ROLES[CONTRIBUTOR]
    for account in ("account2", "Account1", "account", "", "account1@"):
        assert grant_for_roles([role], account) == grant_for_roles([], account)


def test_without_a_role_nothing_is_permitted():
    for roles in ([], [""], ["@account1"], ["Reader"], [f"{READER}@"], [f"{READER}x"], ["\N{KELVIN SIGN}"]):
        result = grant_for_roles(roles, "account1")
        for operation in (Operation.QUERY_ENTITIES, Operation.CREATE_TABLE, Operation.GET_SERVICE_PROPERTIES):
            with pytest.raises(AuthorizationPermissionMismatch):
                result.check(operation)


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


def test_safe_urls():
    for url in ("https://example.org/x", "http://127.8.9.1:8080", "http://[::1]/", "http://localhost/x"):
        assert is_safe_url(url)
    for url in [
        "http://example.org", "http://127.0.0.1.example.org", "http://localhost.example.org", "http://0.0.0.0",
        "http://localhost@example.org", "https://", "https:example.org", "https://[::1", "ftp://example.org",
        "file:///etc/passwd", "example.org", "",
    ]:  # fmt: skip
        assert not is_safe_url(url)

"""The operations that each kind of grant permits, and the messages of refusals."""

from dataclasses import replace
from functools import reduce
from operator import or_

import pytest

from storage.domain.access.grants import (
    OWNER,
    ROLES,
    Grant,
    GrantKind,
    KeyRange,
    Operation,
    Permission,
    Resource,
    operation_of,
)
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import (
    AuthorizationFailure,
    AuthorizationPermissionMismatch,
    AuthorizationResourceTypeMismatch,
    ResourceNotFound,
)
from storage.domain.filters.query import EntityQuery, Position
from storage.domain.values.etag import ANY

LETTERS = {
    "r": Permission.READ, "a": Permission.ADD, "u": Permission.UPDATE, "d": Permission.DELETE,
    "w": Permission.WRITE, "c": Permission.CREATE, "l": Permission.LIST,
}  # fmt: skip
LEVELS = {"s": Resource.SERVICE, "c": Resource.CONTAINER, "o": Resource.OBJECT}

# by operation: the levels and the letters of an account token that do, the letters of a table's; commas part choices
NEEDS = [
    ("GetTableServiceProperties", "s", "r", None),
    ("SetTableServiceProperties", "s", "w", None),
    ("GetTableServiceStats", "s", "r", None),
    ("QueryTables", "c", "l", None),
    ("QueryTable", "c", "l,r", None),
    ("CreateTable", "c", "c,w", None),
    ("DeleteTable", "c", "d", None),
    ("QueryEntity", "o", "r", "r"),
    ("QueryEntities", "o", "r", "r"),
    ("InsertEntity", "o", "a", "a"),
    ("UpdateEntity", "o", "u", "u"),
    ("MergeEntity", "o", "u", "u"),
    ("InsertOrReplaceEntity", "o", "au", "au"),
    ("InsertOrMergeEntity", "o", "au", "au"),
    ("DeleteEntity", "o", "d", "d"),
    ("EntityGroupTransaction", "o", "", ""),
    ("GetTableACL", "", None, None),
    ("SetTableACL", "", None, None),
    ("TablePreflightRequest", "", None, None),
]
SUBSETS = ["", *LETTERS, "au", "ad", "rwl", "raud", "rwdlacu", "wdlcu", "rdlacu"]


def permissions(letters):
    return reduce(or_, (LETTERS[letter] for letter in letters), Permission.NONE)


def resources(letters):
    return reduce(or_, (LEVELS[letter] for letter in letters))


def satisfied(choices, letters):
    return choices is not None and any(set(choice) <= set(letters) for choice in choices.split(","))


def refusal(granted, operation, table="people"):
    try:
        granted.check(Operation(operation), table)
    except Exception as error:
        assert not granted.allows(Operation(operation), table)
        return type(error)
    assert granted.allows(Operation(operation), table)
    return None


def test_an_account_key_may_do_everything():
    assert {Operation(name) for name, *_ in NEEDS} == set(Operation)
    assert {refusal(OWNER, operation) for operation in Operation} == {None}


@pytest.mark.parametrize(("operation", "levels", "needed", "_"), NEEDS)
def test_an_account_token_needs_the_level_and_the_letter(operation, levels, needed, _):
    for letters in SUBSETS:
        for given in ("s", "c", "o", "sc", "sco"):
            granted = Grant(GrantKind.ACCOUNT_SAS, permissions(letters), resources(given))
            if needed is None:
                expected = AuthorizationFailure
            elif not set(levels) & set(given):
                expected = AuthorizationResourceTypeMismatch
            else:
                expected = None if satisfied(needed, letters) else AuthorizationPermissionMismatch
            assert refusal(granted, operation) is expected, (letters, given)


@pytest.mark.parametrize(("operation", "_", "__", "needed"), NEEDS)
def test_a_table_token_needs_the_letter(operation, _, __, needed):
    for letters in ["", "r", "a", "u", "d", "au", "rd", "raud"]:
        granted = Grant(GrantKind.TABLE_SAS, permissions(letters), Resource.OBJECT, table="people")
        if needed is None:
            expected = AuthorizationFailure
        else:
            expected = None if satisfied(needed, letters) else AuthorizationPermissionMismatch
        assert refusal(granted, operation) is expected, letters
        assert refusal(granted, operation, "peoples") is AuthorizationFailure
        assert refusal(replace(granted, legacy=True), operation) is (expected and ResourceNotFound)


# key ranges


@pytest.mark.parametrize(("legacy", "error"), [(False, AuthorizationFailure), (True, ResourceNotFound)])
def test_refuses_a_key_outside_of_the_range(legacy, error):
    granted = Grant(GrantKind.TABLE_SAS, keys=KeyRange(Position("b", ""), Position("c", "5")), legacy=legacy)
    granted.check_key(EntityKey("b", ""))
    granted.check_key(EntityKey("c", "4"))
    for key in (EntityKey("a", "z"), EntityKey("c", "5")):
        with pytest.raises(error):
            granted.check_key(key)


@pytest.mark.parametrize(
    ("bounds", "query", "narrowed"),
    [
        ((None, None), (None, None), (None, None)),
        ((("b", ""), None), (None, None), (("b", ""), None)),
        ((None, ("c", "")), (None, None), (None, ("c", ""))),
        ((("b", ""), ("c", "")), (("a", "5"), None), (("b", ""), ("c", ""))),
        ((("b", ""), ("c", "")), (("b", "5"), None), (("b", "5"), ("c", ""))),
        ((("b", ""), ("c", "")), (("d", ""), None), (("d", ""), ("c", ""))),
        ((("", ""), None), (None, ("c", "")), (("", ""), ("c", ""))),
    ],
)
def test_a_query_is_narrowed_to_the_range(bounds, query, narrowed):
    def positions(pair):
        return [None if key is None else Position(*key) for key in pair]

    start, end = positions(query)
    result = KeyRange(*positions(bounds)).narrow(EntityQuery(top=7, start=start, end=end))
    assert [result.start, result.end] == positions(narrowed)
    assert result.top == 7


# roles


ROLE_REFUSES = {
    "Storage Table Data Reader": set(Operation) - {
        Operation.QUERY_ENTITY, Operation.QUERY_ENTITIES, Operation.QUERY_TABLE, Operation.QUERY_TABLES,
        Operation.ENTITY_GROUP_TRANSACTION,
    },
    "Storage Table Data Contributor": {
        Operation.GET_SERVICE_PROPERTIES, Operation.SET_SERVICE_PROPERTIES, Operation.GET_SERVICE_STATS,
        Operation.PREFLIGHT,
    },
    "Storage Account Contributor": {Operation.PREFLIGHT},
}  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
def test_a_role_refuses(role):
    assert {operation for operation in Operation if not ROLES[role].allows(operation)} == ROLE_REFUSES[role]


# changes


ENTITY = Entity(EntityKey("p", "r"), {})


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        (Insert(ENTITY), Operation.INSERT_ENTITY),
        (Update(ENTITY, ANY, merge=False), Operation.UPDATE_ENTITY),
        (Update(ENTITY, ANY, merge=True), Operation.MERGE_ENTITY),
        (Upsert(ENTITY, merge=False), Operation.INSERT_OR_REPLACE_ENTITY),
        (Upsert(ENTITY, merge=True), Operation.INSERT_OR_MERGE_ENTITY),
        (Delete(ENTITY.key, ANY), Operation.DELETE_ENTITY),
    ],
)
def test_a_change_is_an_operation(change, operation):
    assert operation_of(change) is operation

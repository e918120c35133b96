"""What each kind of grant may do, operation by operation, and how a refusal reads."""

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
    ("QueryTables", "sc", "l", None),
    ("QueryTable", "sc", "l,r", None),
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
    found = Permission.NONE
    for letter in letters:
        found |= LETTERS[letter]
    return found


def resources(letters):
    found = Resource.NONE
    for letter in letters:
        found |= LEVELS[letter]
    return found


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


def test_the_table_names_every_operation():
    assert {Operation(name) for name, *_ in NEEDS} == set(Operation)


@pytest.mark.parametrize("operation", Operation)
def test_an_account_key_may_do_everything(operation):
    assert refusal(OWNER, operation) is None


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


@pytest.mark.parametrize("operation", Operation)
def test_a_table_token_is_for_no_other_table(operation):
    granted = Grant(GrantKind.TABLE_SAS, permissions("raud"), Resource.OBJECT, table="people")
    assert refusal(granted, operation, "peoples") is AuthorizationFailure


@pytest.mark.parametrize("operation", Operation)
def test_what_an_old_token_does_not_permit_is_not_found(operation):
    granted = Grant(GrantKind.TABLE_SAS, Permission.NONE, Resource.OBJECT, table="people", legacy=True)
    expected = None if operation is Operation.ENTITY_GROUP_TRANSACTION else ResourceNotFound
    assert refusal(granted, operation) is expected


# key ranges


def test_refuses_a_key_outside_of_the_range():
    granted = Grant(GrantKind.TABLE_SAS, keys=KeyRange(Position("b", ""), Position("c", "5")))
    granted.check_key(EntityKey("b", ""))
    granted.check_key(EntityKey("c", "4"))
    for key in (EntityKey("a", "z"), EntityKey("c", "5")):
        with pytest.raises(AuthorizationFailure):
            granted.check_key(key)


def test_to_an_old_token_a_key_outside_of_the_range_is_not_found():
    granted = Grant(GrantKind.TABLE_SAS, keys=KeyRange(Position("b", ""), None), legacy=True)
    with pytest.raises(ResourceNotFound):
        granted.check_key(EntityKey("a", ""))


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
    found = KeyRange(*positions(bounds)).narrow(EntityQuery(top=7, start=start, end=end))
    assert [found.start, found.end] == positions(narrowed)
    assert found.top == 7


# roles


def test_a_reader_only_reads():
    granted = ROLES["Storage Table Data Reader"]
    allowed = {operation for operation in Operation if granted.allows(operation)}
    assert {Operation.QUERY_ENTITY, Operation.QUERY_ENTITIES, Operation.QUERY_TABLES} <= allowed
    assert not any(
        name in operation for operation in allowed for name in ("Insert", "Update", "Set", "Create")
    )
    assert not granted.allows(Operation.GET_TABLE_ACL)


def test_a_contributor_keeps_entities_tables_and_policies():
    granted = ROLES["Storage Table Data Contributor"]
    refused = {operation for operation in Operation if not granted.allows(operation)}
    assert Operation.SET_SERVICE_PROPERTIES in refused
    assert not {Operation.CREATE_TABLE, Operation.INSERT_OR_MERGE_ENTITY, Operation.SET_TABLE_ACL} & refused


def test_an_account_contributor_keeps_the_service_as_well():
    granted = ROLES["Storage Account Contributor"]
    assert [operation for operation in Operation if not granted.allows(operation)] == [Operation.PREFLIGHT]


# changes


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        (Insert(Entity(EntityKey("p", "r"), {})), Operation.INSERT_ENTITY),
        (Update(Entity(EntityKey("p", "r"), {}), ANY, merge=False), Operation.UPDATE_ENTITY),
        (Update(Entity(EntityKey("p", "r"), {}), ANY, merge=True), Operation.MERGE_ENTITY),
        (Upsert(Entity(EntityKey("p", "r"), {}), merge=False), Operation.INSERT_OR_REPLACE_ENTITY),
        (Upsert(Entity(EntityKey("p", "r"), {}), merge=True), Operation.INSERT_OR_MERGE_ENTITY),
        (Delete(EntityKey("p", "r"), ANY), Operation.DELETE_ENTITY),
    ],
)
def test_a_change_is_an_operation(change, operation):
    assert operation_of(change) is operation

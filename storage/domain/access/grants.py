"""Grants of keys, tokens and roles, and the permissions that each operation requires.

https://learn.microsoft.com/rest/api/storageservices/create-account-sas#account-sas-permissions-by-operation
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, Flag, StrEnum, auto
from typing import Final, NamedTuple

from storage.domain.entities.changes import Change, Delete, Insert, Update
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import (
    AuthorizationFailure,
    AuthorizationPermissionMismatch,
    AuthorizationResourceTypeMismatch,
    ResourceNotFound,
    StorageError,
)
from storage.domain.filters.query import EntityQuery, Position


class Operation(StrEnum):
    """The operations of the service, by their names in logs and metrics."""

    # every request looks its operation up, and Enum's own hash is Python code
    __hash__ = str.__hash__

    ENTITY_GROUP_TRANSACTION = "EntityGroupTransaction"
    CREATE_TABLE = "CreateTable"
    DELETE_TABLE = "DeleteTable"
    QUERY_TABLE = "QueryTable"
    QUERY_TABLES = "QueryTables"
    INSERT_ENTITY = "InsertEntity"
    INSERT_OR_MERGE_ENTITY = "InsertOrMergeEntity"
    INSERT_OR_REPLACE_ENTITY = "InsertOrReplaceEntity"
    UPDATE_ENTITY = "UpdateEntity"
    MERGE_ENTITY = "MergeEntity"
    DELETE_ENTITY = "DeleteEntity"
    QUERY_ENTITY = "QueryEntity"
    QUERY_ENTITIES = "QueryEntities"
    GET_TABLE_ACL = "GetTableACL"
    SET_TABLE_ACL = "SetTableACL"
    GET_SERVICE_PROPERTIES = "GetTableServiceProperties"
    SET_SERVICE_PROPERTIES = "SetTableServiceProperties"
    GET_SERVICE_STATS = "GetTableServiceStats"
    PREFLIGHT = "TablePreflightRequest"


# the operations that change something, apart from deletions as in the service's logs
DELETES: Final = frozenset({Operation.DELETE_TABLE, Operation.DELETE_ENTITY})
WRITES: Final = frozenset(
    {
        Operation.ENTITY_GROUP_TRANSACTION,
        Operation.CREATE_TABLE,
        Operation.INSERT_ENTITY,
        Operation.INSERT_OR_MERGE_ENTITY,
        Operation.INSERT_OR_REPLACE_ENTITY,
        Operation.UPDATE_ENTITY,
        Operation.MERGE_ENTITY,
        Operation.SET_TABLE_ACL,
        Operation.SET_SERVICE_PROPERTIES,
    }
)
CHANGES: Final = WRITES | DELETES


class Permission(Flag):
    """Permissions by the letters of ``sp`` and of a policy; letters of other services are ignored."""

    NONE = 0
    READ = auto()
    ADD = auto()
    UPDATE = auto()
    DELETE = auto()
    WRITE = auto()
    CREATE = auto()
    LIST = auto()


class Resource(Flag):
    """Resource types of an account SAS, from its field ``srt``."""

    NONE = 0
    SERVICE = auto()  # the service itself
    CONTAINER = auto()  # its tables
    OBJECT = auto()  # their entities


class KeyRange(NamedTuple):
    """Range of entities from ``start`` (inclusive) to ``end`` (exclusive); None means unbounded."""

    start: Position | None = None
    end: Position | None = None

    def covers(self, key: EntityKey) -> bool:
        return (self.start is None or key >= self.start) and (self.end is None or key < self.end)

    def narrow(self, query: EntityQuery) -> EntityQuery:
        """Limit a query to the range."""
        start = max(filter(None, (query.start, self.start)), default=None)
        end = min(filter(None, (query.end, self.end)), default=None)
        return replace(query, start=start, end=end)


ALL_ENTITIES: Final = KeyRange()


class GrantKind(Enum):
    """Origin of a grant, which determines the error of a refusal."""

    OWNER = auto()  # an account key
    ACCOUNT_SAS = auto()
    TABLE_SAS = auto()
    ROLE = auto()


@dataclass(frozen=True, slots=True)
class Grant:
    """Permissions of a caller in an account.

    ``table`` (lower case) and ``keys`` limit a table SAS; ``legacy`` marks versions before 2015-04-05, which
    answer ResourceNotFound to everything that is not permitted.
    """

    kind: GrantKind
    permissions: Permission = Permission.NONE
    resources: Resource = Resource.NONE
    table: str | None = None
    keys: KeyRange = ALL_ENTITIES
    legacy: bool = False

    def check(self, operation: Operation, table: str | None = None) -> None:
        """Check that an operation is allowed; ``table`` is a lower-case name. Raises the service's error."""
        if self.kind is not GrantKind.OWNER:
            refusal = self._refusal(operation, table)
            if refusal is not None:
                raise ResourceNotFound if self.legacy else refusal

    def check_key(self, key: EntityKey, *, reads: bool = False) -> None:
        """Raise AuthorizationFailure for a write outside the key range.

        A read there finds nothing, as recorded answers of the service show: ResourceNotFound.
        """
        if not self.keys.covers(key):
            raise ResourceNotFound if reads or self.legacy else AuthorizationFailure

    @property
    def reads_deleted_tables(self) -> bool:
        """Return whether the caller may read a deleted table as of a time when it existed."""
        return self.kind is GrantKind.OWNER

    def allows(self, operation: Operation, table: str | None = None) -> bool:
        return self.kind is GrantKind.OWNER or self._refusal(operation, table) is None

    def _refusal(self, operation: Operation, table: str | None) -> type[StorageError] | None:
        if self.table is not None and table is not None and table != self.table:
            return AuthorizationFailure
        need = (_ROLE_NEEDS if self.kind is GrantKind.ROLE else _NEEDS).get(operation)
        if need is None or (self.kind is GrantKind.TABLE_SAS and Resource.OBJECT not in need.resources):
            return AuthorizationFailure
        if not need.resources & self.resources:
            # a role has no resource types to mismatch
            return (
                AuthorizationPermissionMismatch
                if self.kind is GrantKind.ROLE
                else AuthorizationResourceTypeMismatch
            )
        if not any(permissions in self.permissions for permissions in need.permissions):
            return AuthorizationPermissionMismatch
        return None


class _Need(NamedTuple):
    """Requirement of an operation: one of ``resources``, and one set of ``permissions`` completely."""

    resources: Resource
    permissions: tuple[Permission, ...]


_READ, _ADD, _UPDATE, _DELETE = Permission.READ, Permission.ADD, Permission.UPDATE, Permission.DELETE
_WRITE, _CREATE, _LIST = Permission.WRITE, Permission.CREATE, Permission.LIST
_SERVICE, _CONTAINER, _OBJECT = Resource.SERVICE, Resource.CONTAINER, Resource.OBJECT

# No SAS allows an operation that is missing here. Microsoft's documents count List Tables among the operations of the
# service ("Access to service-level APIs (e.g., Get/Set Service Properties, Get Service Stats, List Tables)",
# ResourceTypes of azure-data-tables). The service itself answers AuthorizationResourceTypeMismatch to a token with
# srt=s and sp=rwdlacupiyx (AzureStorageExplorer issue 6203, October 2022): it wants c, and an answer outweighs a text.
_NEEDS: Final[Mapping[Operation, _Need]] = {
    Operation.GET_SERVICE_PROPERTIES: _Need(_SERVICE, (_READ,)),
    Operation.SET_SERVICE_PROPERTIES: _Need(_SERVICE, (_WRITE,)),
    Operation.GET_SERVICE_STATS: _Need(_SERVICE, (_READ,)),
    Operation.QUERY_TABLES: _Need(_CONTAINER, (_LIST,)),
    Operation.QUERY_TABLE: _Need(_CONTAINER, (_LIST, _READ)),
    Operation.CREATE_TABLE: _Need(_CONTAINER, (_CREATE, _WRITE)),
    Operation.DELETE_TABLE: _Need(_CONTAINER, (_DELETE,)),
    Operation.QUERY_ENTITY: _Need(_OBJECT, (_READ,)),
    Operation.QUERY_ENTITIES: _Need(_OBJECT, (_READ,)),
    Operation.INSERT_ENTITY: _Need(_OBJECT, (_ADD,)),
    Operation.UPDATE_ENTITY: _Need(_OBJECT, (_UPDATE,)),
    Operation.MERGE_ENTITY: _Need(_OBJECT, (_UPDATE,)),
    Operation.INSERT_OR_REPLACE_ENTITY: _Need(_OBJECT, (_ADD | _UPDATE,)),
    Operation.INSERT_OR_MERGE_ENTITY: _Need(_OBJECT, (_ADD | _UPDATE,)),
    Operation.DELETE_ENTITY: _Need(_OBJECT, (_DELETE,)),
    # the permissions of its parts are checked part by part
    Operation.ENTITY_GROUP_TRANSACTION: _Need(_OBJECT, (Permission.NONE,)),
}


def missing_permissions(operation: Operation, granted: Permission) -> Permission:
    """Return the permissions that a SAS lacks for an operation; of alternatives, the first."""
    need = _NEEDS.get(operation)
    return Permission.NONE if need is None else need.permissions[0] & ~granted


# unlike a SAS, a contributor's bearer token can read and set the policies of a table
_ROLE_NEEDS: Final[Mapping[Operation, _Need]] = {
    **_NEEDS,
    Operation.GET_TABLE_ACL: _Need(_CONTAINER, (_WRITE,)),
    Operation.SET_TABLE_ACL: _Need(_CONTAINER, (_WRITE,)),
}

OWNER: Final = Grant(GrantKind.OWNER)

_EVERYWHERE: Final = _SERVICE | _CONTAINER | _OBJECT
_ENTITIES: Final = _READ | _ADD | _UPDATE | _DELETE
# Azure's built-in roles for tables; each includes those before it
ROLES: Final[Mapping[str, Grant]] = {
    "Storage Table Data Reader": Grant(GrantKind.ROLE, _READ | _LIST, _CONTAINER | _OBJECT),
    "Storage Table Data Contributor": Grant(
        GrantKind.ROLE, _ENTITIES | _LIST | _CREATE | _WRITE, _CONTAINER | _OBJECT
    ),
    "Storage Account Contributor": Grant(GrantKind.ROLE, _ENTITIES | _LIST | _CREATE | _WRITE, _EVERYWHERE),
}


def operation_of(change: Change) -> Operation:
    match change:
        case Insert():
            return Operation.INSERT_ENTITY
        case Update(merge=merge):
            return Operation.MERGE_ENTITY if merge else Operation.UPDATE_ENTITY
        case Delete():
            return Operation.DELETE_ENTITY
        case _:
            return Operation.INSERT_OR_MERGE_ENTITY if change.merge else Operation.INSERT_OR_REPLACE_ENTITY

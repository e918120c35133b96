"""What people are in an account, and the one table of what that lets them do; every door asks it."""

from collections.abc import Mapping
from enum import Enum, IntEnum, StrEnum
from typing import Final


class Role(IntEnum):
    """What somebody is in an account; each may what those before may. The values are stored."""

    VIEWER = 1
    EDITOR = 2
    MAINTAINER = 3
    OWNER = 4


class Capability(Enum):
    """What can be done in an account."""

    READ = "read"
    WRITE = "write"
    MANAGE_TABLES = "manage tables"
    MANAGE_ACCESS = "manage access"
    OWN = "own"


LEAST_ROLE: Final[Mapping[Capability, Role]] = {
    Capability.READ: Role.VIEWER,
    Capability.WRITE: Role.EDITOR,
    Capability.MANAGE_TABLES: Role.MAINTAINER,
    Capability.MANAGE_ACCESS: Role.MAINTAINER,
    Capability.OWN: Role.OWNER,
}


class Scope(StrEnum):
    """How far a token of the management API goes, at most as far as its user may; the values are stored."""

    READ = "read"
    WRITE = "write"
    MANAGE = "manage"


_REACH: Final[Mapping[Scope, frozenset[Capability]]] = {
    Scope.READ: frozenset({Capability.READ}),
    Scope.WRITE: frozenset({Capability.READ, Capability.WRITE, Capability.MANAGE_TABLES}),
    Scope.MANAGE: frozenset(Capability),
}


def may(role: Role, capability: Capability) -> bool:
    return role >= LEAST_ROLE[capability]


def reaches(scope: Scope, capability: Capability) -> bool:
    return capability in _REACH[scope]

"""Roles of users in an account and their capabilities, for the console and the API."""

from collections.abc import Mapping
from enum import Enum, IntEnum, StrEnum
from typing import Final


class Role(IntEnum):
    """Role of a user in an account; each includes the lower ones. The values are stored."""

    VIEWER = 1
    EDITOR = 2
    MAINTAINER = 3
    OWNER = 4


class Capability(Enum):
    """Action that a role permits in an account."""

    READ = "read"
    WRITE = "write"
    MANAGE_TABLES = "manage tables"
    CONFIGURE = "configure"
    MANAGE_ACCESS = "manage access"
    OWN = "own"
    GRANT = "grant"


LEAST_ROLE: Final[Mapping[Capability, Role]] = {
    Capability.READ: Role.VIEWER,
    Capability.WRITE: Role.EDITOR,
    Capability.MANAGE_TABLES: Role.MAINTAINER,
    Capability.CONFIGURE: Role.MAINTAINER,
    Capability.MANAGE_ACCESS: Role.MAINTAINER,
    Capability.OWN: Role.OWNER,
    Capability.GRANT: Role.OWNER,
}


class Scope(StrEnum):
    """Scope of an API token, limited by its user's role. The values are stored."""

    READ = "read"
    WRITE = "write"
    OPERATE = "operate"
    MANAGE = "manage"


# these give access that outlasts a token: keys, policies, SAS, webhooks, members, invitations and users
_LASTING: Final = frozenset({Capability.MANAGE_ACCESS, Capability.GRANT})
_REACH: Final[Mapping[Scope, frozenset[Capability]]] = {
    Scope.READ: frozenset({Capability.READ}),
    Scope.WRITE: frozenset({Capability.READ, Capability.WRITE, Capability.MANAGE_TABLES}),
    Scope.OPERATE: frozenset(Capability) - _LASTING,
    Scope.MANAGE: frozenset(Capability),
}


def read_role(number: int) -> Role | None:
    """Parse a stored role; None for a role of a newer version, which grants nothing here."""
    return Role(number) if number in set(Role) else None


def name_role(number: int) -> str:
    """Return the name of a stored role, or its number if it comes from a newer version."""
    role = read_role(number)
    return str(number) if role is None else role.name.lower()


def may(role: Role, capability: Capability) -> bool:
    return role >= LEAST_ROLE[capability]


def roles_with(capability: Capability) -> list[Role]:
    """Return the roles with a capability, lowest first."""
    return [role for role in Role if may(role, capability)]


def reaches(scope: Scope, capability: Capability) -> bool:
    return capability in _REACH.get(scope, ())

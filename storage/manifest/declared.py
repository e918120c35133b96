"""The declarations of a manifest, and the changes that make the accounts conform to it.

Everything that a manifest leaves out stays as it is. In a section that it has, an item whose value is None is to be
deleted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from storage.domain.values.kinds import AccountKind

Fields = Mapping[str, Any]
Section = Mapping[str, Fields | None]


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """Declaration of a table; ``policies`` and ``indexes`` are None if left out."""

    fields: Fields = field(default_factory=dict)
    policies: Section | None = None
    indexes: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class DeclaredAccount:
    """Declaration of an account; sections that the manifest leaves out are None."""

    kind: AccountKind | None = None
    settings: Fields = field(default_factory=dict)
    service_properties: Fields = field(default_factory=dict)
    members: Section | None = None
    tables: Mapping[str, DeclaredTable | None] | None = None
    webhooks: Section | None = None
    notice_rules: Section | None = None
    snapshot_schedule: Section | None = None  # has one item, without a name
    rehearsal_sets: Section | None = None


Manifest = Mapping[str, DeclaredAccount | None]
"""Accounts by their names; None: the account is to be deleted."""


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


class Resource(StrEnum):
    """Kind of resource that a change concerns. The values are part of the management API."""

    ACCOUNT = "account"
    SERVICE_PROPERTIES = "service_properties"
    MEMBER = "member"
    TABLE = "table"
    POLICIES = "policies"  # all policies of a table; the fields are policies by their ids
    INDEX = "index"
    WEBHOOK = "webhook"
    NOTICE_RULE = "notice_rule"
    SNAPSHOT_SCHEDULE = "snapshot_schedule"
    REHEARSAL_SET = "rehearsal_set"


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between a manifest and an account.

    ``before`` is empty if the resource does not exist yet, and ``after`` if it is deleted.
    """

    action: Action
    resource: Resource
    account: str
    table: Annotated[str, "The table that a policy or index belongs to; else empty."] = ""
    name: Annotated[str, "Of the table, member, index, webhook, rule or set; else empty."] = ""
    before: Annotated[Fields, "The members that differ, as they are."] = field(default_factory=dict)
    after: Annotated[Fields, "The members that differ, as they will be."] = field(default_factory=dict)
    problem: Annotated[str, "Why the change would be refused; empty: nothing is known."] = ""

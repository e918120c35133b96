"""Relation forms of tables, and what statements and operations can do with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Final

from storage.domain.refusals import AnyReason


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a relation: reads and writes that statements support."""

    joins_partitions: bool  # one statement reads, locks or writes entities of several partitions
    # the statement that writes also writes to the history of the account; else the function of the relation, which
    # runs where the partition is, writes a history of its own
    records_in_account: bool
    # it shares its past with the other relations of the account, so that snapshots have it as of their moment
    has_past: bool
    merges_in_insert: bool  # an INSERT may have subqueries, as a merge takes them
    has_long_keys: bool  # it may have a child for keys that are too long for an index
    has_floor: bool  # its Timestamps can be kept above the closed moments; this takes volatile functions
    # PostgreSQL's statistics of this database have its size, its rows and the uses of its indexes; else its table
    # keeps the figures that were last measured elsewhere
    is_measured_here: bool


class Ability(Enum):
    """Operation that a form may lack, with the reason for its refusal."""

    IMAGES = "a table is made equal to a snapshot or another table"
    FEED = "a table is part of the change feed"
    COMPARISON = "a table is compared"
    COPY = "a table is copied with others"
    SNAPSHOT = "a table is part of a snapshot"


@dataclass(frozen=True, slots=True)
class Extension:
    """PostgreSQL extension that a relation form needs, and the settings and statements used where it is installed.

    The settings have no effect in other databases, so that ``ddl_settings`` need not ask whether it is installed.
    """

    name: str
    ddl_settings: Mapping[str, str]  # while functions and views are made that only this database has
    session_settings: Mapping[str, str]  # settings of Django's connections
    key_settings: Mapping[str, str]  # settings of connections whose statements read and write by key
    before_scan: str  # in a transaction, before a read of all partitions
    renewal: str  # SQL that makes a session find out which of its connections elsewhere are lost
    lost: tuple[str, ...]  # beginnings of messages, without a code, of statements that failed with a lost one
    moved: str  # the same, of statements whose function was replaced meanwhile
    remote_plan: tuple[str | int, ...]  # where the node of an explained plan has one of another server
    remote_count: tuple[str | int, ...]  # and how many servers have such a plan
    everywhere: str  # SQL that runs a command on all servers; its rows are success and result of each
    dump_refusal: str  # why pg_dump cannot make a backup of such a database


@dataclass(frozen=True, slots=True)
class RelationForm:
    """Relation form, with its columns in accounts and tables: for new tables, for each table, and for its size."""

    prefix: str  # how the names of its relations begin, before the id of the table
    capabilities: Capabilities
    account_column: str = ""
    column: str = ""
    description: str = ""  # the column's description in the management API
    rows_column: str = ""
    bytes_column: str = ""
    since_column: str = ""  # the time from which on its own history has all changes
    # the path of a module that makes, hides, restores and drops relations of the form, as
    # storage.relations.table_relations does for local ones
    operations: str = ""
    # the path of a storage.core.reading.RelationWatch, a class whose objects run statements on them
    watch: str = ""
    creation_wait: float = 0.0  # seconds; they are created one at a time, for which requests wait; 0: at once
    most_deleted: int | None = None  # tables that an account keeps after their deletion
    longest_deleted: timedelta | None = None  # how long it keeps these
    unavailable: AnyReason | None = None  # why no table can have it, in a database that does not provide it
    lacks: Mapping[Ability, AnyReason] = field(default_factory=dict)
    extension: Extension | None = None

    def relation(self, table_id: int) -> str:
        """Return the name of the relation of a table."""
        return f"{self.prefix}{table_id}"


LOCAL: Final = RelationForm("entity_", Capabilities(*[True] * 7))

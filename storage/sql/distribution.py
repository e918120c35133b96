"""Relations that are distributed over the nodes of a Citus cluster, and what is local to its coordinator.

A distributed relation has a name of its own, `distributed_<id>`, so that a process that still takes its table for a
local one does not find it: it would record changes where no reader looks. Everything else follows from the name: what
statements on the relation may do, its ``Capabilities``.
"""

import re
from dataclasses import dataclass
from typing import Final, Protocol

_PREFIX: Final = "distributed_"
_LOCAL: Final = "entity_"
_HISTORY: Final = "_history"


class HasRelation(Protocol):
    """A table: its id, and whether its relation is distributed."""

    @property
    def pk(self) -> int: ...

    @property
    def distributed(self) -> bool: ...


# SQL, in a row of storage_table: whether its relation is distributed
IS_DISTRIBUTED: Final = "distributed"


def relation_name(table_id: int, *, is_distributed: bool = False) -> str:
    return f"{_PREFIX if is_distributed else _LOCAL}{table_id}"


def relation_of_row(table: str) -> str:
    """Return SQL for the name of the relation of a row of storage_table."""
    return f"CASE WHEN {table}.{IS_DISTRIBUTED} THEN '{_PREFIX}' ELSE '{_LOCAL}' END || {table}.id"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What statements on a relation can do; those on one that is distributed can do nothing of this.

    ``joins_partitions``: one statement reads, locks or writes entities of several partitions.
    ``records_in_account``: the statement that writes also writes to the history of the account; else the function of
    the relation, which runs where the partition is, writes a history of its own.
    ``has_past``: it shares its past with the other relations of the account, so that it can be read as of a moment.
    ``merges_in_insert``: an INSERT may have subqueries, as a merge takes them.
    ``has_long_keys``: it may have a child for keys that are too long for an index.
    ``has_floor``: its Timestamps can be kept above the closed moments; this takes volatile functions.
    ``is_measured_here``: PostgreSQL's statistics of this database have its size, its rows and the uses of its indexes;
    else its table keeps what the nodes were last asked for.
    """

    joins_partitions: bool
    records_in_account: bool
    has_past: bool
    merges_in_insert: bool
    has_long_keys: bool
    has_floor: bool
    is_measured_here: bool


_LOCAL_ONE: Final = Capabilities(*[True] * 7)
_DISTRIBUTED_ONE: Final = Capabilities(*[False] * 7)


def capabilities(relation: str) -> Capabilities:
    return _DISTRIBUTED_ONE if relation.startswith(_PREFIX) else _LOCAL_ONE


def capabilities_of(table: HasRelation) -> Capabilities:
    return _DISTRIBUTED_ONE if table.distributed else _LOCAL_ONE


def table_id_of(relation: str) -> str:
    """Return the id of the table of a relation, as text."""
    return relation.removeprefix(_PREFIX).removeprefix(_LOCAL)


_ON_NODES: Final = re.compile(rf"\b(?:deleted_)?{_PREFIX}[0-9]")


def is_on_nodes(text: str) -> bool:
    """Return whether a statement reads or writes distributed relations, so that it waits for nodes."""
    return _PREFIX in text and _ON_NODES.search(text) is not None


def history_of(relation: str) -> str:
    """Return the name of the relation with the history of a distributed one; the two have their partitions together."""
    return relation + _HISTORY


def locally(ddl: str) -> str:
    """Return DDL of functions or views that Citus keeps on the coordinator; it would fail while a worker is down.

    Elsewhere the setting has no effect.
    """
    return (
        f"SET LOCAL citus.enable_ddl_propagation = off; {ddl};"
        " SET LOCAL citus.enable_ddl_propagation TO DEFAULT"
    )

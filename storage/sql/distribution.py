"""Relations that are distributed over the nodes of a Citus cluster, and what is local to its coordinator.

A distributed relation has a name of its own, `distributed_<id>`, so that a process that still takes its table for a
local one does not find it: it would record changes where no reader looks. Everything else follows from the name: writes
that are recorded go through the function of the relation, which runs where the partition is and writes the history
beside it; statements of several entities are not combined; keys that are too long for an index are refused.
"""

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


def relation_name(table_id: int, *, is_distributed: bool = False) -> str:
    return f"{_PREFIX if is_distributed else _LOCAL}{table_id}"


def is_distributed(relation: str) -> bool:
    return relation.startswith(_PREFIX)


def table_id_of(relation: str) -> str:
    """Return the id of the table of a relation, as text."""
    return relation.removeprefix(_PREFIX).removeprefix(_LOCAL)


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

"""DDL of distributed relations: creation, distribution, gathering, deletion and restoration."""

from collections.abc import Sequence
from typing import Final

from storage.cluster import function
from storage.cluster.subject import FORM
from storage.domain.values.kinds import AccountKind
from storage.sql import batch, moments
from storage.sql.django import fetch
from storage.sql.forms import history_of, locally, relation_name
from storage.sql.history import RECORDED_COLUMNS, Op, writers_name
from storage.sql.relations import (
    ADD_PROPERTIES,
    CANCEL_INDEXING,
    CREATE,
    deleted_name,
    drop_local_function,
)

_PATIENCE: Final = "3s"  # for statements that are running; others wait behind
# otherwise functions and relations could not be changed in one transaction
_IN_ORDER: Final = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
_SPREADING: Final = 0x74616270  # class of advisory locks, an arbitrary number
# two transactions that distribute relations and then functions would deadlock on pg_dist_colocation
_ALONE: Final = (
    f"SET LOCAL lock_timeout = '{FORM.creation_wait:.0f}s'",
    f"SELECT pg_advisory_xact_lock({_SPREADING}, 0)",
    "SET LOCAL lock_timeout TO DEFAULT",
)
# the columns of a segment of history, but for the numbers that each node would give on its own: see undistribute
_HISTORY: Final = """
CREATE TABLE {history} (
    pk text COLLATE "C" NOT NULL,
    rk text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,
    was bigint,
    actor integer NOT NULL,
    op "char" NOT NULL,
    request uuid NOT NULL,
    anns text,
    vals text
) WITH (toast_tuple_target = 4080, autovacuum_vacuum_insert_scale_factor = 0.2)
"""
_HISTORY_INDEXES: Final = (
    "CREATE INDEX {history}_entity ON {history} (pk, rk, ts)",
    "CREATE INDEX {history}_ts ON {history} (ts)",
)
_SPREAD: Final = "SELECT create_distributed_table('{relation}', 'pk', colocate_with := '{beside}')"
_DELEGATE: Final = """
SELECT create_distributed_function(
    '{relation}_change_set(text, integer[], text[], text[], bigint[], jsonb[], text[], text[], text[], integer, uuid)',
    'p', colocate_with := '{beside}', force_delegation := true
)
"""
# the order of changes of an entity; one that was deleted and inserted in the same moment was deleted first
_KEEP_HISTORY: Final = f"""
INSERT INTO {{view}} {RECORDED_COLUMNS}
SELECT {{table_id}}, op, ts, was, actor, request, pk, rk, anns, vals FROM {{history}}
ORDER BY ts, op <> '{Op.DELETE}', pk, rk
"""
_IS_DELEGATED: Final = """
SELECT 1 FROM pg_proc AS p
JOIN pg_dist_object AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
JOIN pg_dist_partition AS r ON r.colocationid = d.colocationid
WHERE p.proname = %s AND p.pronamespace = current_schema()::regnamespace
    AND r.logicalrelid = to_regclass(%s) AND d.distribution_argument_index = 0 AND d.force_delegation
"""
_SOURCE: Final = """
SELECT prosrc FROM pg_proc WHERE proname = %s AND pronamespace = current_schema()::regnamespace
"""
_HELPERS: Final = """
SELECT p.oid::regprocedure::text FROM pg_proc AS p
WHERE p.pronamespace = current_schema()::regnamespace AND p.prokind = 'f'
    AND (p.provolatile = 'i' AND p.proname ~ '^(cosmos_)?entity_[a-z]' OR p.proname ~ '^[a-z_]+_moment(_floor)?$')
    AND NOT EXISTS (SELECT 1 FROM pg_dist_object AS d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid)
ORDER BY 1
"""


def is_coordinator() -> bool:
    """Return whether the database is a Citus coordinator."""
    return bool(fetch("SELECT 1 WHERE to_regproc('create_distributed_table') IS NOT NULL"))


def is_spread(relation: str) -> bool:
    """Return whether Citus has distributed a relation; only on a coordinator."""
    return bool(fetch("SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass(%s)", relation))


def is_delegated(relation: str) -> bool:
    """Return whether the function of a relation is delegated to the nodes with its rows."""
    return bool(fetch(_IS_DELEGATED, f"{relation}_change_set", relation))


def local_bytes(relation: str) -> int:
    """Return the bytes that a distributed relation's former local rows use on the coordinator."""
    found = fetch("SELECT pg_relation_size(to_regclass(%s))", relation)
    return int(found[0][0] or 0)


def missing_helpers() -> list[str]:
    """Return the SQL helper functions that other nodes lack; only on a coordinator."""
    return [name for (name,) in fetch(_HELPERS)]


def spread_helper(function: str) -> str:
    return f"SELECT create_distributed_function('{function}')"


def create(table_id: int, kind: AccountKind) -> list[str]:
    """Return commands that make an empty relation in its distributed form."""
    relation = FORM.relation(table_id)
    own = [text.format(relation=relation) for text in (CREATE, ADD_PROPERTIES)]
    return [*own, *_accompany(relation, kind)]


def take_form(table_id: int, kind: AccountKind) -> list[str]:
    """Return commands that convert a local relation to the distributed form."""
    local, relation = relation_name(table_id), FORM.relation(table_id)
    return [
        f"ALTER TABLE {local} RENAME TO {relation}",
        f"DROP TABLE IF EXISTS {local}_long",
        drop_local_function(local),
        *_accompany(relation, kind),
    ]


def _accompany(relation: str, kind: AccountKind) -> list[str]:
    history = history_of(relation)
    indexes = [text.format(history=history) for text in _HISTORY_INDEXES]
    return [
        _HISTORY.format(history=history),
        *indexes,
        locally(function.create_delegated_function(relation, kind)),
    ]


def spread(table_id: int) -> list[str]:
    """Return commands that distribute a relation; it stays readable, but writes wait."""
    relation = FORM.relation(table_id)
    history = history_of(relation)
    return [
        _IN_ORDER,
        *_ALONE,
        *_lock_writers(relation, history, before=[moments.HOLD_WRITES.format(table_id=table_id)]),
        # Delegating a function changes nothing of it for PostgreSQL: without a change, sessions that have called it
        # often, and have a plan without values, would go on to run it on the coordinator, with its clock.
        f"ALTER FUNCTION {relation}_change_set COST 100",
        _SPREAD.format(relation=relation, beside="none"),
        _SPREAD.format(relation=history, beside=relation),
        _DELEGATE.format(relation=relation, beside=relation),
    ]


def _lock_writers(*relations: str, mode: str = "EXCLUSIVE", before: Sequence[str] = ()) -> list[str]:
    """Return statements that lock out writers, with a short timeout because other sessions queue behind the lock."""
    return [
        f"SET LOCAL lock_timeout = '{_PATIENCE}'",
        *before,
        *(f"LOCK TABLE {relation} IN {mode} MODE" for relation in relations),
        "SET LOCAL lock_timeout TO DEFAULT",
    ]


def free_local_rows(table_id: int) -> list[str]:
    """Return commands, to be committed separately, that truncate the local rows of a distributed relation."""
    relation = FORM.relation(table_id)
    free = "SELECT truncate_local_data_after_distributing_table('{relation}')"
    both = [free.format(relation=name) for name in (history_of(relation), relation)]
    return [*both, f"ANALYZE {relation}"]


def gather(table_id: int) -> list[str]:
    """Return commands that move a distributed relation's rows to the coordinator, keeping its form."""
    relation = FORM.relation(table_id)
    history = history_of(relation)
    return [
        _IN_ORDER,
        # On all nodes, because the function of the relation writes where the rows are. Readers wait too: a delegated
        # call that waits on a node holds a lock on the coordinator that undistribute_table needs at its end, and Citus
        # does not see that deadlock.
        *_lock_writers(relation, history, mode="ACCESS EXCLUSIVE"),
        f"DROP FUNCTION IF EXISTS {relation}_change_set",
        f"SELECT undistribute_table('{history}')",
        f"SELECT undistribute_table('{relation}')",
    ]


def leave_form(table_id: int, account_id: int, kind: AccountKind, *, is_recorded: bool) -> list[str]:
    """Return commands that convert an undistributed relation of the distributed form to the local form."""
    relation, local = FORM.relation(table_id), relation_name(table_id)
    history, view = history_of(relation), writers_name(account_id)
    kept = _KEEP_HISTORY.format(view=view, table_id=table_id, history=history)
    return [
        f"ALTER TABLE {relation} RENAME TO {local}",
        *([kept] if is_recorded else []),
        f"DROP TABLE {history}",
        locally(f"DROP FUNCTION IF EXISTS {relation}_change_set; {batch.create_function(local, view, kind)}"),
    ]


def soft_delete(table_id: int, *, is_spread: bool) -> list[str]:
    """Return commands that soft-delete a relation by renaming it."""
    relation = FORM.relation(table_id)
    return [
        CANCEL_INDEXING.format(table_id=table_id),
        *_drop_function(relation, is_spread=is_spread),
        f"ALTER TABLE {relation} RENAME TO {deleted_name(relation)}",
    ]


def restore(table_id: int, kind: AccountKind, *, is_spread: bool) -> list[str]:
    """Return commands that restore a soft-deleted relation."""
    relation = FORM.relation(table_id)
    deleted = deleted_name(relation)
    return [
        *_create_function(relation, kind, beside=deleted if is_spread else None),
        f"ALTER TABLE {deleted} RENAME TO {relation}",
    ]


def has_other_function(relation: str, kind: AccountKind) -> bool:
    """Return whether the function of a relation comes from another version."""
    created = function.create_delegated_function(relation, kind)
    return any(f"$${source}$$" not in created for (source,) in fetch(_SOURCE, f"{relation}_change_set"))


def renew_function(table_id: int, kind: AccountKind, *, is_spread: bool) -> list[str]:
    """Return commands that replace the function of a relation by this version's."""
    relation = FORM.relation(table_id)
    return [
        *_drop_function(relation, is_spread=is_spread),
        *_create_function(relation, kind, beside=relation if is_spread else None),
    ]


def _drop_function(relation: str, *, is_spread: bool) -> list[str]:
    drop = f"DROP FUNCTION IF EXISTS {relation}_change_set"
    return [_IN_ORDER, drop] if is_spread else [locally(drop)]


def _create_function(relation: str, kind: AccountKind, *, beside: str | None) -> list[str]:
    """Return commands that create the function of a relation, colocated with the distributed relation ``beside``."""
    create = locally(function.create_delegated_function(relation, kind))
    if beside is None:
        return [create]
    return [_IN_ORDER, create, _DELEGATE.format(relation=relation, beside=beside)]


def drop(table_id: int) -> list[str]:
    """Return commands that drop a soft-deleted relation with its history."""
    relation = FORM.relation(table_id)
    return [
        _IN_ORDER,
        f"DROP TABLE IF EXISTS {history_of(relation)}",
        f"DROP TABLE IF EXISTS {deleted_name(relation)}",
    ]


def forget_changes_before(relation: str) -> str:
    """Return the command that deletes changes of a distributed relation before a time in ticks."""
    return f"DELETE FROM {history_of(relation)} WHERE ts < %s"


def keys_are_short(table_ids: Sequence[int]) -> bool:
    """Return whether all keys in the tables are short enough for an index entry."""
    names = [f"{relation_name(it)}_long" for it in table_ids]
    for (name,) in fetch("SELECT to_regclass(name)::text FROM unnest(%s::text[]) AS name", names):
        if name is not None and fetch(f"SELECT 1 FROM {name} LIMIT 1"):
            return False
    return True

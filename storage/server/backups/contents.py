"""Summary of a database's content, for verification after a restore."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql

from storage.domain.values.numbers import counted
from storage.server import database
from storage.server.options import Options

# one text for a row, whatever is set for the database, and no end while pg_dump uses the snapshot
_SETTINGS: Final = (
    "-c timezone=UTC -c datestyle=ISO -c bytea_output=hex -c extra_float_digits=1"
    " -c idle_in_transaction_session_timeout=0"
)
_RELATIONS: Final = """
SELECT c.oid, c.relname FROM pg_class AS c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    AND (c.relname ~ '^entity_[0-9]+$' OR c.relname IN ('storage_account', 'storage_table'))
ORDER BY c.relname
"""
# by whom, and how often, is of no interest: only whether anything was
_WRITTEN: Final = """
SELECT pg_stat_get_tuples_inserted(%(oid)s) + pg_stat_get_tuples_updated(%(oid)s) + pg_stat_get_tuples_deleted(%(oid)s)
"""
_SAMPLE: Final = """
(SELECT pk, rk, md5(e::text) FROM {relation} AS e ORDER BY pk, rk LIMIT 5)
UNION (SELECT pk, rk, md5(e::text) FROM {relation} AS e ORDER BY pk DESC, rk DESC LIMIT 5)
"""
_SAMPLED: Final = 1000  # tables whose entities are compared; for the others, the number of entities
_ROW: Final = "SELECT md5(e::text) FROM {relation} AS e WHERE pk = %s AND rk = %s"

Sample = frozenset[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Relation:
    """Summary of a relation; ``rows`` is None if uncertain, ``sample`` has keys and checksums."""

    rows: int | None
    sample: Sample = frozenset()

    def in_json(self) -> dict[str, Any]:
        return {"rows": self.rows, "sample": sorted(self.sample)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Relation":
        return cls(found["rows"], frozenset((pk, rk, digest) for pk, rk, digest in found["sample"]))


@dataclass(frozen=True, slots=True)
class Reading:
    """Summary of all relations in one snapshot, with the rows ever written to each."""

    relations: Mapping[str, Relation]
    written: Mapping[str, int]


def connect(options: Options) -> psycopg.Connection[Any]:
    """Return a connection with repeatable reads, so that all queries see one snapshot."""
    parameters = database.parameters(options)
    parameters["options"] = f"{parameters.get('options', '')} {_SETTINGS}".strip()
    connection: psycopg.Connection[Any] = psycopg.connect(**parameters)  # type: ignore[arg-type]
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    return connection


def read(connection: psycopg.Connection[Any]) -> Reading:
    relations, written = {}, {}
    samples_left = _SAMPLED
    for oid, name in connection.execute(_RELATIONS).fetchall():
        [[written[name]]] = connection.execute(_WRITTEN, {"oid": oid}).fetchall()
        sample: Sample = frozenset()
        if name.startswith("entity_") and samples_left:
            samples_left -= 1
            sample = frozenset(connection.execute(_about(_SAMPLE, name)).fetchall())
        relations[name] = Relation(_count(connection, name), sample)
    return Reading(relations, written)


def between(before: Reading, after: Reading) -> dict[str, Relation]:
    """Return the facts that hold throughout the time between two readings."""
    relations = {}
    for name in before.relations.keys() & after.relations.keys():
        old, new = before.relations[name], after.relations[name]
        is_idle = old.rows == new.rows and before.written[name] == after.written[name]
        relations[name] = Relation(old.rows if is_idle else None, old.sample & new.sample)
    return relations


def differences(connection: psycopg.Connection[Any], expected: Mapping[str, Relation]) -> list[str]:
    """Return a sentence for each relation that differs from expectations."""
    names = {name for _, name in connection.execute(_RELATIONS).fetchall()}
    differences = []
    for name, relation in expected.items():
        if name not in names:
            differences.append(f"{_describe(name)} is missing.")
            continue
        if relation.rows is not None and (rows := _count(connection, name)) != relation.rows:
            differences.append(f"{_describe(name)} has {counted(rows, 'row')} instead of {relation.rows:,}.")
        wrong = sum(
            (digest,) != connection.execute(_about(_ROW, name), (pk, rk)).fetchone()
            for pk, rk, digest in relation.sample
        )
        if wrong:
            differences.append(
                f"{_describe(name)} has other content in {wrong} of {len(relation.sample)} entities."
            )
    return differences


def count(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """Return the number of accounts, tables and entities, without deleted tables."""
    names = [name for _, name in connection.execute(_RELATIONS).fetchall()]
    counts = {name: _count(connection, name) for name in names}
    if "storage_table" in counts:
        query = "SELECT count(*) FROM storage_table WHERE deleted_at IS NULL"
        [[counts["storage_table"]]] = connection.execute(query).fetchall()
    return {
        "accounts": counts.pop("storage_account", 0),
        "tables": counts.pop("storage_table", 0),
        "entities": sum(counts.values()),
    }


def _count(connection: psycopg.Connection[Any], relation: str) -> int:
    return int(connection.execute(_about("SELECT count(*) FROM {relation}", relation)).fetchall()[0][0])


def _about(query: str, relation: str) -> sql.Composed:
    return sql.SQL(query).format(relation=sql.Identifier(relation))


def _describe(relation: str) -> str:
    number = re.fullmatch("entity_([0-9]+)", relation)
    return f"The table with id {number[1]}" if number else f"The list {relation}"


def database_name(options: Options) -> str:
    found = database.parameters(options)
    return found.get("dbname") or found["user"]

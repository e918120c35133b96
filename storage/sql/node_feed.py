"""Change feed statements for tables with their own history, whose rows are on several servers.

Their changes are read in the order of Timestamps, up to a moment that is closed: see storage.sql.moments.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from storage.core.relation_forms import Extension, RelationForm
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey
from storage.domain.history.recorded import Op
from storage.domain.values.stored import read_member
from storage.sql import arrays
from storage.sql.content import content
from storage.sql.forms import OTHERS, by_form, has_other_form, history_of
from storage.sql.moments import ticks
from storage.sql.statement import Lane, Result, Statement, integer_at, read_numbers, text_at


class NodeTable(NamedTuple):
    """Table with its own history."""

    id: int
    name: str
    form: RelationForm
    since: int  # its own history begins then, in ticks; 0: not yet
    forgotten: int  # and has nothing older

    @property
    def relation(self) -> str:
        return self.form.relation(self.id)

    @property
    def history(self) -> str:
        return history_of(self.relation)


_FORMS: Final = " ".join(f"WHEN t.{form.column} THEN {place}" for place, form in enumerate(OTHERS))
_TABLES: Final = f"""
SELECT t.id, t.name, CASE {_FORMS or "WHEN false THEN 0"} END,
    coalesce({ticks(by_form("t", "since_column", "t.created_at"))}, 0), coalesce({ticks("t.changes_since")}, 0)
FROM storage_table AS t
WHERE t.id = ANY ($1::bigint[]) AND {has_other_form("t")} AND t.deleted_at IS NULL
ORDER BY t.id
"""


def tables(ids: Sequence[int]) -> Statement[list[NodeTable]]:
    """Return the statement for the tables with their own history among these."""

    def read(result: Result) -> list[NodeTable]:
        return [
            NodeTable(
                integer_at(result, row, 0),
                text_at(result, row, 1),
                OTHERS[integer_at(result, row, 2)],
                integer_at(result, row, 3),
                integer_at(result, row, 4),
            )
            for row in range(result.ntuples)
        ]

    return Statement(_TABLES, (arrays.bigints(ids),), Lane.KEY, read)


# the identity of a server and of its log; the log is on its disk when it has answered
_IDENTITY: Final = """
SELECT concat(system_identifier, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
    left(set_config('synchronous_commit', 'local', true), 0),
    left(pg_logical_emit_message(true, 'tablero feed', '')::text, 0)) FROM pg_control_system()
"""


def identities(extension: Extension) -> Statement[list[str] | None]:
    """Return the statement that flushes all servers; their identities, or None if not all have answered."""

    def read(result: Result) -> list[str] | None:
        rows = range(result.ntuples)
        if not all(text_at(result, row, 0) == "t" for row in rows):
            return None
        return sorted(text_at(result, row, 1) for row in rows)

    return Statement(extension.everywhere.format(command=_IDENTITY), (), Lane.KEY, read)


def has_changes(table: NodeTable, since: int) -> Statement[bool]:
    """Return the statement that tells whether there is a change from a time on."""
    text = f"SELECT 1 FROM {table.history} WHERE ts >= $1::bigint LIMIT 1"
    return Statement(text, (str(since),), Lane.KEY, lambda result: result.ntuples > 0)


class NodeChange(NamedTuple):
    """Change without the images of its entity."""

    ticks: int
    table: NodeTable
    key: EntityKey
    op: Op
    was: int | None
    actor: int
    request: str
    size: int  # bytes of the image before


# a deletion in the same moment as an insertion was before it
_CHANGES: Final = f"""
SELECT ts, pk, rk, op::text, was, actor, request::text, coalesce(octet_length(vals), 0) FROM {{history}}
WHERE ts BETWEEN $1::bigint AND $2::bigint ORDER BY ts, op <> '{Op.DELETE}', pk, rk LIMIT $3::bigint
"""


def changes(table: NodeTable, since: int, until: int, top: int) -> Statement[list[NodeChange]]:
    """Return the statement for the first changes of a table between two times, which are included."""

    def read(result: Result) -> list[NodeChange]:
        return [
            NodeChange(
                integer_at(result, row, 0),
                table,
                EntityKey(text_at(result, row, 1), text_at(result, row, 2)),
                Op(text_at(result, row, 3)),
                None if result.get_value(row, 4) is None else integer_at(result, row, 4),
                integer_at(result, row, 5),
                text_at(result, row, 6),
                integer_at(result, row, 7),
            )
            for row in range(result.ntuples)
        ]

    return Statement(
        _CHANGES.format(history=table.history), (str(since), str(until), str(top)), Lane.FILTER, read
    )


# entities by place, with a Timestamp of each
Places = dict[int, tuple[EntityKey, int]]
_PLACES: Final = """
unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS w (place, pk, rk, ts)
"""
_FOLLOWING: Final = f"""
SELECT w.place, h.pk, h.rk, (min(ARRAY[h.ts, coalesce(octet_length(h.vals), 0)]))[1],
    (min(ARRAY[h.ts, coalesce(octet_length(h.vals), 0)]))[2]
FROM {_PLACES} JOIN {{history}} AS h ON h.pk = w.pk AND h.rk = w.rk AND h.ts > w.ts GROUP BY w.place, h.pk, h.rk
"""
_SIZES: Final = f"""
SELECT w.place, octet_length(e.vals)
FROM {_PLACES} JOIN {{relation}} AS e ON e.pk = w.pk AND e.rk = w.rk AND e.ts = w.ts
"""
_IMAGES: Final = f"""
SELECT w.place, {content("h.")} FROM {_PLACES} JOIN {{relation}} AS h ON h.pk = w.pk AND h.rk = w.rk AND h.ts = w.ts
"""


def _parameters(places: Places) -> tuple[bytes, ...]:
    keys = [key for key, _ in places.values()]
    return arrays.bigints(places), *arrays.columns(keys), arrays.bigints(ts for _, ts in places.values())


def following(table: NodeTable, places: Places) -> Statement[dict[int, tuple[int, int]]]:
    """Return the statement for the next change of each entity: its Timestamp, and the size of the image before it."""
    read: Callable[[Result], dict[int, tuple[int, int]]] = lambda result: {  # noqa: E731
        integer_at(result, row, 0): (integer_at(result, row, 3), integer_at(result, row, 4))
        for row in range(result.ntuples)
    }
    return Statement(_FOLLOWING.format(history=table.history), _parameters(places), Lane.KEY, read)


def sizes(table: NodeTable, places: Places) -> Statement[dict[int, int]]:
    """Return the statement for the sizes of entities that have the Timestamps."""
    return Statement(_SIZES.format(relation=table.relation), _parameters(places), Lane.KEY, read_numbers)


def images(table: NodeTable, places: Places, *, is_present: bool) -> Statement[dict[int, bytes]]:
    """Return the statement for the entities with the Timestamps, or before the changes that have them."""
    text = _IMAGES.format(relation=table.relation if is_present else table.history)
    if not is_present:
        text += "WHERE h.was IS NOT NULL"
    read: Callable[[Result], dict[int, bytes]] = lambda result: {  # noqa: E731
        integer_at(result, row, 0): result.get_value(row, 1) or b"" for row in range(result.ntuples)
    }
    return Statement(text, _parameters(places), Lane.KEY, read)


_ACTORS: Final = """
SELECT a.id, a.kind, a.name, a.token, coalesce(s.label, '') FROM storage_historyactor AS a
LEFT JOIN storage_issuedtoken AS s ON s.account_id = $1::bigint AND a.kind = 'sas' AND s.fingerprint = a.name
WHERE a.id = ANY ($2::bigint[])
"""


def actors(account_id: int, ids: set[int]) -> Statement[dict[int, Actor]]:
    """Return the statement for actors by id."""

    def read(result: Result) -> dict[int, Actor]:
        return {
            integer_at(result, row, 0): Actor(
                read_member(ActorKind, text_at(result, row, 1)),
                text_at(result, row, 2),
                token=text_at(result, row, 3),
                label=text_at(result, row, 4),
            )
            for row in range(result.ntuples)
        }

    return Statement(_ACTORS, (str(account_id), arrays.bigints(ids)), Lane.KEY, read)


def pause() -> Statement[None]:
    """Return the statement that waits a moment for transactions."""
    return Statement("SELECT pg_sleep(0.02)", (), Lane.KEY, lambda _: None)

"""One statement per entity operation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import itemgetter
from typing import Final, NoReturn

from storage.domain.entities.changes import Change, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import EntityAlreadyExists, ResourceNotFound
from storage.domain.values.kinds import AccountKind
from storage.sql import arrays, change_function, moments
from storage.sql.change_rows import ChangeRow, change_row, written
from storage.sql.content import content
from storage.sql.failures import named
from storage.sql.forms import capabilities
from storage.sql.history import RECORDED_COLUMNS, Op, Recorder, recorded_table
from storage.sql.long_keys import is_long
from storage.sql.statement import (
    ChangedMeanwhile,
    Combination,
    Lane,
    Parameters,
    Result,
    Statement,
    integer_at,
    text_at,
)

_COLUMNS: Final = "(pk, rk, ts, props, anns, vals)"

# A merge replaces the lines of the properties in the change. It sorts all lines by their names, with an escaped
# character after all others; in a Cosmos account, each line stays in its place. The name of a line is between its first
# two quotation marks, followed by @ in an annotation. The steps of every merge are inline, because a function call
# takes five times as long; rare ones are not, because the preparation of a subquery takes time even if it is not run.
# Lines are cut off with right, because substr counts all characters.
_NAME: Final = "split_part(split_part(line, '\"', 2), '@', 1)"
_MERGED: Final = f"""
(SELECT coalesce(string_agg(E'\\n' || line, '' ORDER BY replace({_NAME}, '\\u', '~') COLLATE "C"), '')
 FROM string_to_table(right({{new}} || {{old}}, -1), E'\\n') WITH ORDINALITY AS member (line, place){{computed}}
 WHERE place <= cardinality({{gone}}) OR {_NAME} <> ALL ({{gone}}))
"""
_EXCESS: Final = "{function}(e.pk, e.rk, entity_without({old}, {gone}) || {new})"
_MERGED_OF_KIND: Final = {
    AccountKind.STORAGE: _MERGED,
    AccountKind.COSMOS: "entity_merged_in_place({old}, {new})",
}
EXCESS_FUNCTIONS: Final = {
    AccountKind.STORAGE: "entity_excess",
    AccountKind.COSMOS: "cosmos_entity_excess",
}
# The result may exceed a limit that both parts keep, of 252 properties, with 7 characters each at least, or of bytes.
_LINES: Final = "octet_length({text}) - octet_length(replace({text}, E'\\n', ''))"
_FITS: Final = f"""
CASE
    WHEN octet_length(e.vals) + octet_length({{new}}) < 1764 THEN true
    WHEN octet_length(e.vals) + octet_length({{new}}) < 500000
        AND {_LINES.format(text="e.vals")} + {_LINES.format(text="{new}")} <= 252 THEN true
    ELSE {{excess}} IS NULL
END
"""


def merge_parts(kind: AccountKind, new: str, gone: str, *, is_computed: bool = False) -> dict[str, str]:
    """Return SQL that merges a change's lines and property names into a row ``e``."""
    names, computed = (
        ("computed.gone", f", (SELECT {gone} AS gone OFFSET 0) AS computed") if is_computed else (gone, "")
    )
    old = content("e.")
    merged = _MERGED_OF_KIND[kind].format(old=old, gone=names, new=new, computed=computed)
    excess = _EXCESS.format(function=EXCESS_FUNCTIONS[kind], old=old, new=new, gone=gone)
    return {"merged": merged, "excess": excess, "fits": _FITS.format(new=new, excess=excess)}


# Each verb is a command without its RETURNING clause, formatted with _names. Its changes are the parameters of the
# statement, or rows ``given``; it becomes a statement of its own, or a part of one that records them: see _Verb.

_INSERT_ROWS: Final = f"INSERT INTO {{relation}} AS e {_COLUMNS} {{rows}}"
_INSERT: Final = f"{_INSERT_ROWS} ON CONFLICT DO NOTHING"
_UPSERT: Final = f"""
{_INSERT_ROWS}
ON CONFLICT (pk, rk) DO UPDATE
SET ts = {{after_inserted}}, props = excluded.props, anns = '', vals = excluded.vals
"""
_UPSERT_MERGE: Final = f"""
{_INSERT_ROWS}
ON CONFLICT (pk, rk) DO UPDATE
SET ts = {{after_inserted}}, props = e.props || excluded.props, anns = '', vals = {{merged}}
WHERE {{fits}}
"""
_REPLACE: Final = """
UPDATE {relation} AS e
SET ts = {after_now}, props = {props}, anns = '', vals = {vals}
{from_given}
WHERE {same} AND {is_expected}
"""
_MERGE: Final = """
UPDATE {relation} AS e
SET ts = {after_now}, props = e.props || {props}, anns = '', vals = {merged}
{from_given}
WHERE {same} AND {is_expected} AND {fits}
"""
# insert the entities that did not exist when the statement began, unless it is a merge
_INSERT_OTHERS: Final = f"""
{_INSERT_ROWS}
WHERE {{is_upsert}} AND NOT EXISTS (SELECT FROM {{relation}} AS e WHERE {{same}})
ON CONFLICT DO NOTHING
"""
_DELETE_ANY: Final = "DELETE FROM {relation} AS e {using_given} WHERE {same}"
_DELETE: Final = f"{_DELETE_ANY} AND {{is_expected}}"

# why a command changed nothing, asked for only then; null if the merge would be possible now
_OTHER_VERSION: Final = "'UpdateConditionNotSatisfied'"
_UNMERGED: Final = f"CASE WHEN e.ts <> {{expected}} THEN {_OTHER_VERSION} ELSE {{excess}} END"
_REASON: Final = "SELECT {failed} FROM {{relation}} AS e WHERE {{same}}"
# A recorded command returns the row as it was besides the new Timestamp. Asking for ``old`` costs an insertion 3 % and
# a deletion 4 % of its time, so these do without.
_OLD: Final = ", old.ts AS was, old.anns, old.vals"
_DELETED: Final = ", e.ts AS was, e.anns, e.vals"

_KEYS: Final = ("pk", "rk")
_ROW: Final = (*_KEYS, "props", "vals")
_ALL: Final = (*_ROW, "expected", "gone")
_CASTS: Final = {
    "props": "jsonb",
    "vals": "text",
    "expected": "bigint",
    "gone": "text[]",
    "actor": "integer",
    "request": "uuid",
}


def _given(columns: Sequence[str]) -> str:
    """Return a CTE ``given`` with the parameters of several changes as rows, cast once."""
    selected = ", ".join(f"{name}::{_CASTS[name]}" if name in _CASTS else name for name in columns)
    parameters = ", ".join(f"${number}::text[]" for number in range(1, len(columns) + 1))
    names = ", ".join(columns)
    return f"given AS MATERIALIZED (SELECT {selected} FROM unnest({parameters}) AS given ({names}))"


def _names(relation: str, kind: AccountKind, columns: Sequence[str], *, is_several: bool) -> dict[str, str]:
    """Return the SQL fragments with which commands are formatted."""
    if is_several:
        row = {name: f"given.{name}" for name in columns}
    else:
        row = {name: _parameter(name, number) for number, name in enumerate(columns, 1)}
    now = moments.now_of_insertion(relation)
    inserted = ", ".join(
        (*(row[name] for name in _KEYS), now, row.get("props", ""), "''", row.get("vals", ""))
    )
    names = row | {
        "relation": relation,
        "rows": f"SELECT {inserted} FROM given" if is_several else f"VALUES ({inserted})",
        "from_given": "FROM given" if is_several else "",
        "using_given": "USING given" if is_several else "",
        "same": "e.pk = {pk} AND e.rk = {rk}".format(**row),
        "is_expected": "({expected} IS NULL OR e.ts = {expected})".format(**row)
        if "expected" in row
        else "true",
        "after_now": moments.after(moments.now(relation)),
        "after_inserted": moments.after("excluded.ts"),
    }
    if "gone" in row:
        names |= merge_parts(kind, row["vals"], row["gone"])
    return names


def _parameter(name: str, number: int) -> str:
    return f"${number}::{_CASTS[name]}" if name in _CASTS else f"${number}"


@dataclass(frozen=True, slots=True, eq=False)
class _Verb:
    """Template of a write statement, for one or several changes, with or without history."""

    op: Op | None  # the operation that history records; None: an insertion or an update, as it turns out
    command: str
    columns: tuple[str, ...] = _ROW
    # the command that inserts those of several entities that the first does not find
    others: str | None = None

    def text(self, relation: str, kind: AccountKind, history: str | None, *, is_several: bool) -> str:
        """Return the SQL; rows have the Timestamp and, for several changes, the keys before it."""
        if not is_several:
            text = f"{self.command} RETURNING e.ts" if history is None else self._recorded(relation, history)
        else:
            text = self._several() if history is None else self._recorded(relation, history, is_several=True)
        following = len(self.columns) + (0 if history is None else 2) + 1
        names = _names(relation, kind, self.columns, is_several=is_several)
        return text.format(is_upsert=f"${following}::boolean", **names)

    @property
    def _commands(self) -> dict[str, str]:
        done = {"done": self.command}
        return done if self.others is None else {**done, "inserted": self.others}

    def _several(self) -> str:
        keyed = "RETURNING e.pk, e.rk, e.ts"
        done, *others = self._commands.items()
        if not others:
            return f"WITH {_given(self.columns)} {done[1]} {keyed}"
        parts = ", ".join(f"{name} AS ({command} {keyed})" for name, command in (done, *others))
        return f"WITH {_given(self.columns)}, {parts} SELECT * FROM done UNION ALL SELECT * FROM inserted"

    def _recorded(self, relation: str, history: str, *, is_several: bool = False) -> str:
        commands = self._commands
        keys = "e.pk, e.rk, " if is_several else ""
        parts = [_given((*self.columns, "actor", "request"))] if is_several else []
        for name, command in commands.items():
            timestamp = self._timestamp(name, relation, history)
            parts.append(f"{name} AS ({command} RETURNING {keys}{timestamp} AS ts{self._before(name)})")
        changes = " UNION ALL ".join(
            self._changes(relation, name, is_several=is_several) for name in commands
        )
        parts.append(f"recorded AS (INSERT INTO {history} {RECORDED_COLUMNS} {changes})")
        ticks = "was" if self.op is Op.DELETE else "ts"
        columns = f"pk, rk, {ticks}" if is_several else ticks
        selected = " UNION ALL ".join(f"SELECT {columns} FROM {name}" for name in commands)
        return f"WITH {', '.join(parts)} {selected}"

    def _op(self, name: str) -> Op | None:
        return Op.INSERT if name == "inserted" else self.op

    def _before(self, name: str) -> str:
        match self._op(name):
            case Op.INSERT:
                return ""
            case Op.DELETE:
                return _DELETED
            case _:
                return _OLD

    def _timestamp(self, name: str, relation: str, history: str) -> str:
        """Return SQL for the recorded Timestamp."""
        match self._op(name):
            case Op.UPDATE:
                return "e.ts"
            case Op.DELETE:
                return moments.of_deletion(relation)
            case Op.INSERT | None:
                return moments.in_order(history, recorded_table(relation))

    def _changes(self, relation: str, name: str, *, is_several: bool) -> str:
        """Select the rows to record in the history from those returned by a command."""
        known = self._op(name)
        op = f"'{known}'"
        if known is None:
            op = f"CASE WHEN was IS NULL THEN '{Op.INSERT}' ELSE '{Op.UPDATE}' END"
        if is_several:
            columns, source = "given.actor, given.request, pk, rk", f"{name} JOIN given USING (pk, rk)"
        else:
            first = len(self.columns) + 1
            columns, source = f"${first}::integer, ${first + 1}::uuid, $1, $2", name
        was, images = (
            ("NULL::bigint", "NULL, NULL") if known is Op.INSERT else ("was", f"{name}.anns, {name}.vals")
        )
        return f"SELECT {recorded_table(relation)}, {op}, ts, {was}, {columns}, {images} FROM {source}"


_VERBS: Final = {
    "insert": _Verb(Op.INSERT, _INSERT),
    "upsert": _Verb(None, _UPSERT),
    "upsert_merge": _Verb(None, _UPSERT_MERGE, (*_ROW, "gone")),
    "replace": _Verb(Op.UPDATE, _REPLACE, (*_ROW, "expected")),
    "merge": _Verb(Op.UPDATE, _MERGE, _ALL),
    "delete": _Verb(Op.DELETE, _DELETE, (*_KEYS, "expected")),
    # with an ``expected`` that is null, a deletion would take 4 % longer
    "delete_any": _Verb(Op.DELETE, _DELETE_ANY, _KEYS),
}
# For several changes together, two verbs share the text of another, with values for the parameters that they lack. For
# 3 to 16 of them PostgreSQL then takes 4 to 10 µs more if they are merges, and 1 to 3 µs more if they are deletions:
# about 1 % of the CPU time of the requests. One change alone would bear all of it, so each verb has a text of its own
# for that.
_VERBS_OF_SEVERAL: Final = {
    **{name: _VERBS[name] for name in ("insert", "upsert", "replace", "delete")},
    "merge": _Verb(Op.UPDATE, _MERGE, _ALL, _INSERT_OTHERS),
}
_AS_ONE_OF_SEVERAL: Final[Mapping[str, tuple[str, Callable[[Parameters], Parameters]]]] = {
    "delete_any": ("delete", lambda it: (*it[:2], None, *it[2:])),
    "upsert_merge": ("merge", lambda it: (*it[:4], None, *it[4:])),
}
_PICK: Final[Mapping[str, Callable[[Parameters], Parameters]]] = {
    name: itemgetter(*map(_ALL.index, verb.columns)) for name, verb in _VERBS.items()
}


@lru_cache(maxsize=4096)
def _text(
    verb: str, relation: str, kind: AccountKind, history: str | None, *, is_several: bool = False
) -> str:
    verbs = _VERBS_OF_SEVERAL if is_several else _VERBS
    return verbs[verb].text(relation, kind, history, is_several=is_several)


# writes


def change(relation: str, change: Change, recorder: Recorder | None = None) -> Statement[int]:
    """Return the statement of a change, with the new Timestamp as result, for a deletion the last one."""
    row, can = change_row(change), capabilities(relation)
    is_possible = (recorder is None or can.records_in_account) and (
        row.verb != "upsert_merge" or can.merges_in_insert
    )
    if row.is_long or not is_possible:
        return change_function.apply_one(relation, row, recorder)
    verb = "delete_any" if row.verb == "delete" and row.expected is None else row.verb
    history = None if recorder is None else recorder.relation
    expected = None if row.expected is None else str(row.expected)
    parameters = _PICK[verb]((*row.key, *row.fragments, expected, row.gone))
    return Statement(
        _text(verb, relation, row.kind, history),
        parameters if recorder is None else (*parameters, *recorder.parameters),
        Lane.KEY,
        _inserted if verb == "insert" else _timestamp,
        _combination(verb, relation, row.kind, history) if can.joins_partitions else None,
        _reason(relation, row),
        None if row.gone is None else partial(change_function.apply_one, relation, row, recorder),
    )


def insert_all(
    relation: str, entities: Iterable[Entity], recorder: Recorder | None = None
) -> Iterator[Statement[int]]:
    """Yield statements that insert entities of one kind with unused keys, in any partitions."""
    ordinary = []
    alone = not capabilities(relation).joins_partitions
    for entity in entities:
        if alone or is_long(entity.key):
            yield change(relation, Insert(entity), recorder)
        else:
            row = (*entity.key, *written(entity))
            ordinary.append((*row, *(recorder.parameters if recorder is not None else ())))
    if ordinary:
        history = None if recorder is None else recorder.relation
        text = _text("insert", relation, AccountKind.STORAGE, history, is_several=True)
        yield Statement(text, arrays.columns(ordinary), Lane.KEY, lambda result: result.ntuples)


def change_all(
    relation: str, changes: Sequence[Insert | Upsert], recorder: Recorder | None = None
) -> Statement[Mapping[EntityKey, int]] | None:
    """Return one statement for changes of one kind to different entities; None if they cannot be combined.

    Its result maps keys to new Timestamps. Changes without a Timestamp were not made; ``change`` raises the
    reason.
    """
    rows = [change_row(change) for change in changes]
    verb, kind = rows[0].verb, rows[0].kind
    can = capabilities(relation)
    if not can.joins_partitions or not (recorder is None or can.records_in_account):
        return None
    history, pick = None if recorder is None else recorder.relation, _PICK[verb]
    recorded = () if recorder is None else recorder.parameters
    several = [(*pick((*row.key, *row.fragments, None, row.gone)), *recorded) for row in rows]
    return _combination(verb, relation, kind, history).statement(several)


_PRESENT: Final = """
SELECT e.pk, e.rk FROM {relation} AS e JOIN unnest($1::text[], $2::text[]) AS given (pk, rk)
ON e.pk = given.pk AND e.rk = given.rk
"""


def present(relation: str, keys: Sequence[EntityKey]) -> Statement[set[EntityKey]]:
    """Return the statement for the existing keys among these."""

    def read(result: Result) -> set[EntityKey]:
        return {EntityKey(text_at(result, row, 0), text_at(result, row, 1)) for row in range(result.ntuples)}

    return Statement(_PRESENT.format(relation=relation), arrays.columns(keys), Lane.KEY, read)


def _reason(relation: str, row: ChangeRow) -> Statement[int] | None:
    """Return the statement that tells why a change was not made; no row means that the entity is missing."""
    if row.gone is not None:
        expected = None if row.expected is None else str(row.expected)
        parameters: Parameters = (*row.key, row.fragments.content, expected, row.gone)
        explain = _explain_upsert if row.verb == "upsert_merge" else _explain
        return Statement(_reason_text(relation, row.kind, merges=True), parameters, Lane.KEY, explain)
    if row.expected is not None:
        return Statement(_reason_text(relation, row.kind, merges=False), row.key, Lane.KEY, _explain)
    return None


@lru_cache(maxsize=1024)
def _reason_text(relation: str, kind: AccountKind, *, merges: bool) -> str:
    columns = (*_KEYS, "vals", "expected", "gone") if merges else _KEYS
    text = _REASON.format(failed=_UNMERGED if merges else _OTHER_VERSION)
    return text.format(**_names(relation, kind, columns, is_several=False))


@lru_cache(maxsize=4096)
def _combination(verb: str, relation: str, kind: AccountKind, history: str | None) -> Combination[int]:
    name, complete = _AS_ONE_OF_SEVERAL.get(verb, (verb, None))
    is_upsert = ("t" if verb == "upsert_merge" else "f") if name == "merge" else None
    text = _text(name, relation, kind, history, is_several=True)

    def statement(several: Sequence[Parameters]) -> Statement[Mapping[EntityKey, int]]:
        rows = several if complete is None else list(map(complete, several))
        columns = arrays.columns(rows)
        return Statement(text, columns if is_upsert is None else (*columns, is_upsert), Lane.KEY, _timestamps)

    return Combination(statement)


def _timestamps(result: Result) -> Mapping[EntityKey, int]:
    return {
        EntityKey(text_at(result, row, 0), text_at(result, row, 1)): integer_at(result, row, 2)
        for row in range(result.ntuples)
    }


def _inserted(result: Result) -> int:
    if result.ntuples == 0:
        raise EntityAlreadyExists
    return integer_at(result, 0, 0)


def _timestamp(result: Result) -> int:
    if result.ntuples == 0:
        raise ResourceNotFound
    return integer_at(result, 0, 0)


def _explain(result: Result) -> NoReturn:
    if result.ntuples == 0:
        raise ResourceNotFound
    if result.get_value(0, 0) is None:
        raise ChangedMeanwhile
    raise named(text_at(result, 0, 0))


def _explain_upsert(result: Result) -> NoReturn:
    if result.ntuples == 0:
        raise ChangedMeanwhile
    _explain(result)

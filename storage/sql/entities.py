"""One statement per entity operation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, NoReturn, assert_never

from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.entities.entity import (
    Entity,
    EntityKey,
    Fragments,
    check_size,
    quote_name,
)
from storage.domain.errors import EntityAlreadyExists, ResourceNotFound
from storage.domain.values.kinds import AccountKind
from storage.sql import arrays, change_function, long_keys, moments
from storage.sql.distribution import is_distributed
from storage.sql.failures import named
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

NOTHING: Final = Fragments("{}", "", "")  # of the row of a deletion

_COLUMNS: Final = "(pk, rk, ts, props, anns, vals)"

# A merge removes the lines of the properties in the change and appends its own. The result may exceed a limit that
# both parts keep; small ones cannot (252 properties take 1,764 characters).
# The name of a line is between its first two quotation marks, followed by @ in an annotation. What every merge does is
# inline, because a call of a function takes five times as long; what hardly any does is not, because the preparation
# of a subquery takes time even if it is not run.
_MERGED: Final = """
(SELECT coalesce(string_agg(E'\\n' || line, ''), '')
 FROM string_to_table(substr(e.{column}, 2), E'\\n') AS line
 WHERE split_part(split_part(line, '"', 2), '@', 1) <> ALL ({gone})) || {new}
"""
_EXCESS: Final = """
{{excess_of_kind}}(e.pk, e.rk, entity_without(e.anns, {gone}) || {anns}, entity_without(e.vals, {gone}) || {vals})
"""
EXCESS_FUNCTIONS: Final = {
    AccountKind.STORAGE: "entity_excess",
    AccountKind.COSMOS: "cosmos_entity_excess",
}
_FITS: Final = """
CASE
    WHEN octet_length(e.vals) + octet_length({vals}) < 1764 THEN true
    ELSE {excess} IS NULL
END
"""


def merge_parts(anns: str, vals: str, gone: str) -> dict[str, str]:
    merged_anns = _MERGED.format(column="anns", gone=gone, new=anns)
    merged_vals = _MERGED.format(column="vals", gone=gone, new=vals)
    excess = _EXCESS.format(anns=anns, vals=vals, gone=gone)
    fits = _FITS.format(vals=vals, excess=excess)
    return {"merged_anns": merged_anns, "merged_vals": merged_vals, "excess": excess, "fits": fits}


# Each write is a command without its RETURNING clause; ``from_was`` is where one finds the row as it was that
# cannot return it. It becomes a statement of its own, or a part of one that records it: see _Write.

_INSERT: Final = f"""
INSERT INTO {{relation}} AS e {_COLUMNS}
VALUES ($1, $2, {{now_of_insertion}}, $3::jsonb, $4, $5)
ON CONFLICT DO NOTHING
"""
_REPLACE: Final = """
UPDATE {relation} AS e
SET ts = greatest({now}, e.ts + 1), props = $3::jsonb, anns = $4, vals = $5
{from_was}
WHERE e.pk = $1 AND e.rk = $2
"""
_OR_REPLACE: Final = """
ON CONFLICT (pk, rk) DO UPDATE
SET ts = greatest(excluded.ts, e.ts + 1), props = excluded.props, anns = excluded.anns, vals = excluded.vals
"""
_UPSERT: Final = f"""
INSERT INTO {{relation}} AS e {_COLUMNS}
VALUES ($1, $2, {{now_of_insertion}}, $3::jsonb, $4, $5)
{_OR_REPLACE}
"""
_MERGE_PARTS: Final = merge_parts("$4::text", "$5::text", "$7::text[]")
_MERGE: Final = """
UPDATE {{relation}} AS e
SET ts = greatest({{now}}, e.ts + 1), props = e.props || $3::jsonb, anns = {merged_anns}, vals = {merged_vals}
{{from_was}}
WHERE e.pk = $1 AND e.rk = $2 AND ($6::bigint IS NULL OR e.ts = $6::bigint) AND {fits}
""".format(**_MERGE_PARTS)
# null if the merge would be possible now
_MERGE_FAILED: Final = """
CASE WHEN e.ts <> $5::bigint THEN 'UpdateConditionNotSatisfied' ELSE {excess} END
""".format(**merge_parts("$3::text", "$4::text", "$6::text[]"))
_UPSERT_MERGE_PARTS: Final = merge_parts("$4::text", "$5::text", "$6::text[]")
_UPSERT_MERGE: Final = """
INSERT INTO {{relation}} AS e {columns}
VALUES ($1, $2, {{now_of_insertion}}, $3::jsonb, $4, $5)
ON CONFLICT (pk, rk) DO UPDATE
SET ts = greatest(excluded.ts, e.ts + 1), props = e.props || excluded.props,
    anns = {merged_anns}, vals = {merged_vals}
WHERE {fits}
""".format(columns=_COLUMNS, **_UPSERT_MERGE_PARTS)
_UPSERT_MERGE_FAILED: Final = "{excess}".format(**merge_parts("$3::text", "$4::text", "$5::text[]"))
_DELETE: Final = "DELETE FROM {relation} AS e WHERE e.pk = $1 AND e.rk = $2"
_OTHER_VERSION: Final = "'UpdateConditionNotSatisfied'"


# The same for several entities, in the order of their keys. What is not returned runs again alone, and finds out why.
_CASTS: Final = {
    "props": "jsonb",
    "expected": "bigint",
    "gone": "text[]",
    "actor": "integer",
    "request": "uuid",
}


def _given(columns: Sequence[str]) -> str:
    """The parameters of several changes as rows ``given``; each is cast once, not wherever it is used."""
    selected = ", ".join(f"{name}::{_CASTS[name]}" if name in _CASTS else name for name in columns)
    parameters = ", ".join(f"${number}::text[]" for number in range(1, len(columns) + 1))
    names = ", ".join(columns)
    return f"given AS MATERIALIZED (SELECT {selected} FROM unnest({parameters}) AS given ({names}))"


_KEYS: Final = ("pk", "rk")
_ROW: Final = (*_KEYS, "props", "anns", "vals")
_INSERT_GIVEN: Final = f"""
INSERT INTO {{relation}} AS e {_COLUMNS}
SELECT pk, rk, {{now_of_insertion}}, props, anns, vals FROM given
"""
_SAME: Final = "e.pk = given.pk AND e.rk = given.rk"
_INSERT_SEVERAL: Final = f"{_INSERT_GIVEN} ON CONFLICT DO NOTHING"
_UPSERT_SEVERAL: Final = f"{_INSERT_GIVEN} {_OR_REPLACE}"
_REPLACE_SEVERAL: Final = f"""
UPDATE {{relation}} AS e
SET ts = greatest({{now}}, e.ts + 1), props = given.props, anns = given.anns, vals = given.vals
FROM given {{from_was}}
WHERE {_SAME}
"""
_PARTS_OF_GIVEN: Final = merge_parts("given.anns", "given.vals", "given.gone")
_MERGE_GIVEN: Final = """
UPDATE {{relation}} AS e
SET ts = greatest({{now}}, e.ts + 1), props = e.props || given.props, anns = {merged_anns}, vals = {merged_vals}
FROM given {{from_was}}
WHERE {same} AND {fits}
""".format(same=_SAME, **_PARTS_OF_GIVEN)
_MERGE_SEVERAL: Final = f"{_MERGE_GIVEN} AND (given.expected IS NULL OR e.ts = given.expected)"
# those that there are not when the statement begins are inserted
_UPSERT_MERGE_SEVERAL: Final = f"""
{_INSERT_GIVEN}
WHERE NOT EXISTS (SELECT FROM {{relation}} AS e WHERE {_SAME})
ON CONFLICT DO NOTHING
"""
_DELETE_SEVERAL: Final = f"DELETE FROM {{relation}} AS e USING given WHERE {_SAME}"

# the row as it was, for PostgreSQL 15 to 17, which cannot return it; locked, so that it is the one that is changed
_WAS: Final = (
    "was AS MATERIALIZED (SELECT ts, anns, vals FROM {relation} WHERE pk = $1 AND rk = $2 FOR UPDATE)"
)
_WAS_SEVERAL: Final = f"""
was AS MATERIALIZED (
    SELECT e.pk, e.rk, e.ts, e.anns, e.vals FROM {{relation}} AS e JOIN given ON {_SAME} FOR UPDATE OF e
)
"""
# why a command changed nothing, asked for only then
_REASON: Final = "SELECT {failed} FROM {{relation}} AS e WHERE e.pk = $1 AND e.rk = $2"
# what a recorded command returns beyond the new Timestamp: the row as it was
_NOTHING_WAS: Final = "NULL::bigint AS was, NULL::text AS anns, NULL::text AS vals"
_WAS_DELETED: Final = "e.ts AS was, e.anns, e.vals"
_OLD: Final = "old.ts AS was, old.anns, old.vals"
_READ: Final = "was.ts AS was, was.anns, was.vals"


@dataclass(frozen=True, slots=True, eq=False)
class _Write:
    """A write of one entity, or of several: a statement is made of it, which records its history or does not.

    ``parameters`` are those of ``command``, ``op`` is what its history says; None: an insertion or an update, as it
    turns out. ``failed`` is why one that changed nothing did not, in SQL over the row ``e`` that there is; it has the
    parameters of the command but for the projection. ``inserts`` is a second command, for those of several that the
    first one does not find.
    """

    op: Op | None
    command: str
    parameters: tuple[str, ...] = _ROW
    failed: str | None = None
    is_several: bool = False
    inserts: str | None = None

    def text(self, relation: str, kind: AccountKind, history: str | None, returns_old: bool) -> str:
        """Return the statement; its rows are a Timestamp, those of several are keys and a Timestamp.

        ``history`` is the view to write to; an actor and a request then follow the other parameters.
        """
        text = self._unrecorded() if history is None else self._recorded(relation, history, returns_old)
        reads_was = history is not None and self._reads_was(returns_old)
        from_was = ("JOIN was USING (pk, rk)" if self.is_several else "FROM was") if reads_was else ""
        return text.format(
            relation=relation,
            now=moments.now(relation),
            now_of_insertion=moments.now_of_insertion(relation),
            excess_of_kind=EXCESS_FUNCTIONS[kind],
            from_was=from_was,
        )

    def _reads_was(self, returns_old: bool) -> bool:
        return self.op is Op.UPDATE and not returns_old

    def _unrecorded(self) -> str:
        if self.is_several:
            keyed = "RETURNING e.pk, e.rk, e.ts"
            if self.inserts is None:
                return f"WITH {_given(self.parameters)} {self.command} {keyed}"
            done = f"done AS ({self.command} {keyed}), inserted AS ({self.inserts} {keyed})"
            return (
                f"WITH {_given(self.parameters)}, {done} SELECT * FROM done UNION ALL SELECT * FROM inserted"
            )
        return f"{self.command} RETURNING e.ts"

    def _recorded(self, relation: str, history: str, returns_old: bool) -> str:
        keys = "e.pk, e.rk, " if self.is_several else ""
        before = _OLD if returns_old else _READ
        inserted = moments.in_order(history, recorded_table(relation), is_several=self.is_several)
        match self.op:
            case Op.INSERT:
                before, after = "", inserted
            case Op.UPDATE:
                after = "e.ts"
            case Op.DELETE:
                before, after = _WAS_DELETED, moments.of_deletion(relation)
            case None:
                after = inserted
        returned = f"{keys}{after} AS ts" + (f", {before}" if before else "")
        commands = {"done": f"{self.command} RETURNING {returned}"}
        if self.inserts is not None:
            commands["inserted"] = f"{self.inserts} RETURNING {keys}{inserted} AS ts, {_NOTHING_WAS}"
        parts = [_given((*self.parameters, "actor", "request"))] if self.is_several else []
        if self._reads_was(returns_old):
            parts.append(_WAS_SEVERAL if self.is_several else _WAS)
        parts += [f"{name} AS ({command})" for name, command in commands.items()]
        changes = " UNION ALL ".join(self._changes(relation, name) for name in commands)
        parts.append(f"recorded AS (INSERT INTO {history} {RECORDED_COLUMNS} {changes})")
        timestamp = "was" if self.op is Op.DELETE else "ts"
        columns = f"pk, rk, {timestamp}" if self.is_several else timestamp
        found = " UNION ALL ".join(f"SELECT {columns} FROM {name}" for name in commands)
        return f"WITH {', '.join(parts)} {found}"

    def reason(self, relation: str, kind: AccountKind) -> str:
        """Return the statement that says why the command changed nothing; no row: there is no entity."""
        text = _REASON.format(failed=self.failed)
        return text.format(relation=relation, excess_of_kind=EXCESS_FUNCTIONS[kind])

    def _changes(self, relation: str, name: str) -> str:
        """Select from the rows that a command returned what is recorded of them."""
        known = Op.INSERT if name == "inserted" else self.op
        op = (
            f"'{known}'"
            if known is not None
            else f"CASE WHEN was IS NULL THEN '{Op.INSERT}' ELSE '{Op.UPDATE}' END"
        )
        if self.is_several:
            columns, source = "given.actor, given.request, pk, rk", f"{name} JOIN given USING (pk, rk)"
        else:
            first = len(self.parameters) + 1
            columns, source = f"${first}::integer, ${first + 1}::uuid, $1, $2", name
        was, images = (
            ("NULL::bigint", "NULL, NULL") if self.op is Op.INSERT else ("was", f"{name}.anns, {name}.vals")
        )
        return f"SELECT {recorded_table(relation)}, {op}, ts, {was}, {columns}, {images} FROM {source}"


_INSERTION: Final = _Write(Op.INSERT, _INSERT)
_INSERTIONS: Final = _Write(Op.INSERT, _INSERT_SEVERAL, is_several=True)
_UPSERTION: Final = _Write(None, _UPSERT)
_UPSERTIONS: Final = _Write(None, _UPSERT_SEVERAL, is_several=True)
_REPLACEMENT: Final = _Write(Op.UPDATE, _REPLACE)
_REPLACEMENTS: Final = _Write(Op.UPDATE, _REPLACE_SEVERAL, is_several=True)
_REPLACEMENT_IF: Final = _Write(
    Op.UPDATE, f"{_REPLACE} AND e.ts = $6::bigint", (*_ROW, "expected"), _OTHER_VERSION
)
_REPLACEMENTS_IF: Final = _Write(
    Op.UPDATE, f"{_REPLACE_SEVERAL} AND e.ts = given.expected", (*_ROW, "expected"), is_several=True
)
_MERGING: Final = _Write(Op.UPDATE, _MERGE, (*_ROW, "expected", "gone"), _MERGE_FAILED)
_MERGINGS: Final = _Write(Op.UPDATE, _MERGE_SEVERAL, (*_ROW, "expected", "gone"), is_several=True)
_UPSERT_MERGING: Final = _Write(None, _UPSERT_MERGE, (*_ROW, "gone"), _UPSERT_MERGE_FAILED)
_UPSERT_MERGINGS: Final = _Write(
    Op.UPDATE, _MERGE_GIVEN, (*_ROW, "gone"), is_several=True, inserts=_UPSERT_MERGE_SEVERAL
)
_DELETION: Final = _Write(Op.DELETE, _DELETE, _KEYS)
_DELETIONS: Final = _Write(Op.DELETE, _DELETE_SEVERAL, _KEYS, is_several=True)
_DELETION_IF: Final = _Write(
    Op.DELETE, f"{_DELETE} AND e.ts = $3::bigint", (*_KEYS, "expected"), _OTHER_VERSION
)
_DELETIONS_IF: Final = _Write(
    Op.DELETE, f"{_DELETE_SEVERAL} AND e.ts = given.expected", (*_KEYS, "expected"), is_several=True
)


@lru_cache(maxsize=4096)
def _text(write: _Write, relation: str, kind: AccountKind, history: str | None, returns_old: bool) -> str:
    return write.text(relation, kind, history, returns_old)


def written(entity: Entity) -> Fragments:
    """The texts of an entity's row, its limits checked."""
    texts = entity.fragments
    check_size(entity, texts)
    return texts


def text_array(names: Iterable[str]) -> str:
    """Write property names, quoted as in a row, as a PostgreSQL array literal."""
    return "{" + ",".join(quote_name(name).replace("\\", "\\\\") for name in names) + "}"


# writes


def change(relation: str, change: Change, recorder: Recorder | None = None) -> Statement[int]:
    """Return the statement of a change; its result is the new Timestamp (the last one of a deleted entity)."""
    # Citus refuses the subqueries of a merge in an INSERT
    merges_or_inserts = isinstance(change, Upsert) and change.merge
    if is_distributed(relation) and (recorder is not None or merges_or_inserts):
        return _delegated(relation, change, recorder)
    match change:
        case Insert(entity):
            if is_long(entity.key):
                operation = long_keys.operation(relation, "insert", entity.key)
                return change_function.apply_one(relation, operation, entity.key, written(entity), recorder)
            return _statement(relation, _INSERTION, _row(entity), recorder, _inserted, _INSERTIONS)
        case Upsert(entity, merge):
            gone = text_array(entity.properties) if merge else None
            if is_long(entity.key) or (recorder is not None and not recorder.returns_old):
                # the row that was can only be locked if there is one
                operation = long_keys.operation(relation, "upsert_merge" if merge else "upsert", entity.key)
                texts = written(entity)
                return change_function.apply_one(relation, operation, entity.key, texts, recorder, gone=gone)
            if merge:
                row = (*_row(entity), gone)
                statement = _statement(
                    relation, _UPSERT_MERGING, row, recorder, _timestamp, _UPSERT_MERGINGS, entity.kind
                )
                statement.locking = partial(_delegated, relation, change, recorder)
                return statement
            return _statement(relation, _UPSERTION, _row(entity), recorder, _timestamp, _UPSERTIONS)
        case Update(entity, condition, merge):
            expected = None if condition.expected is None else str(condition.expected)
            if merge:
                row = (*_row(entity), expected, text_array(entity.properties))
                statement = _statement(relation, _MERGING, row, recorder, _timestamp, _MERGINGS, entity.kind)
                statement.locking = partial(_delegated, relation, change, recorder)
                return statement
            if expected is None:
                return _statement(relation, _REPLACEMENT, _row(entity), recorder, _timestamp, _REPLACEMENTS)
            row = (*_row(entity), expected)
            return _statement(relation, _REPLACEMENT_IF, row, recorder, _timestamp, _REPLACEMENTS_IF)
        case Delete(key, condition):
            if condition.expected is None:
                return _statement(relation, _DELETION, key, recorder, _timestamp, _DELETIONS)
            row = (*key, str(condition.expected))
            return _statement(relation, _DELETION_IF, row, recorder, _timestamp, _DELETIONS_IF)
        case _:
            assert_never(change)


def _delegated(relation: str, change: Change, recorder: Recorder | None) -> Statement[int]:
    """Return the call of the function that locks the entity, changes it and writes its history."""
    match change:
        case Insert(entity):
            operation, row, expected, merges = "insert", written(entity), None, False
        case Upsert(entity, merges):
            operation, row, expected = "upsert_merge" if merges else "upsert", written(entity), None
        case Update(entity, condition, merges):
            operation, row, expected = "merge" if merges else "replace", written(entity), condition.expected
        case Delete(_, condition):
            operation, row, expected, merges = "delete", NOTHING, condition.expected, False
        case _:
            assert_never(change)
    key = change.key
    if not isinstance(change, Update | Delete):
        operation = long_keys.operation(relation, operation, key)
    gone = None if isinstance(change, Delete) or not merges else text_array(change.entity.properties)
    return change_function.apply_one(relation, operation, key, row, recorder, expected=expected, gone=gone)


def insert_all(
    relation: str, entities: Iterable[Entity], recorder: Recorder | None = None
) -> Iterator[Statement[int]]:
    """Yield statements that insert entities of any partitions, all of one kind, whose keys are free."""
    ordinary = []
    alone = is_distributed(relation)
    for entity in entities:
        if alone or is_long(entity.key):
            yield change(relation, Insert(entity), recorder)
        else:
            ordinary.append((*_row(entity), *(recorder.parameters if recorder is not None else ())))
    if ordinary:
        text = _text(_INSERTIONS, relation, AccountKind.STORAGE, *_view(recorder))
        yield Statement(text, arrays.columns(ordinary), Lane.KEY, lambda result: result.ntuples)


def _view(recorder: Recorder | None) -> tuple[str | None, bool]:
    return (None, False) if recorder is None else (recorder.relation, recorder.returns_old)


def _statement(
    relation: str,
    write: _Write,
    parameters: Parameters,
    recorder: Recorder | None,
    read: Callable[[Result], int],
    several: _Write,
    kind: AccountKind = AccountKind.STORAGE,
) -> Statement[int]:
    """``kind`` makes a difference to merges only."""
    view = _view(recorder)
    text = _text(write, relation, kind, *view)
    # several entities would be on several nodes
    combination = None if is_distributed(relation) else _combination(several, relation, kind, *view)
    reason = None if write.failed is None else _reason(write, relation, kind, parameters)
    if recorder is not None:
        parameters = (*parameters, *recorder.parameters)
    return Statement(text, parameters, Lane.KEY, read, combination, reason)


def _reason(write: _Write, relation: str, kind: AccountKind, parameters: Parameters) -> Statement[int]:
    explain = _explain_upsert if write.op is None else _explain
    asked = parameters[:2] if write.failed is _OTHER_VERSION else (*parameters[:2], *parameters[3:])
    return Statement(_reason_text(write, relation, kind), asked, Lane.KEY, explain)


@lru_cache(maxsize=1024)
def _reason_text(write: _Write, relation: str, kind: AccountKind) -> str:
    return write.reason(relation, kind)


def _row(entity: Entity) -> tuple[str, ...]:
    return (*entity.key, *written(entity))


@lru_cache(maxsize=4096)
def _combination(
    write: _Write, relation: str, kind: AccountKind, history: str | None, returns_old: bool = False
) -> Combination[int]:
    text = _text(write, relation, kind, history, returns_old)

    def statement(several: Sequence[Parameters]) -> Statement[Mapping[EntityKey, int]]:
        return Statement(text, arrays.columns(several), Lane.KEY, _timestamps)

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

"""The faults: each replaces one text of a file by another."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Fault:
    """A fault in the source: a text that replaces another one."""

    name: str
    file: str
    before: str
    after: str
    place: int | None = None  # the occurrence to replace, from 0; None if there is only one

    def apply(self, text: str) -> str:
        """Return the text of the file with the fault; raises ValueError if there is no such text."""
        parts = text.split(self.before)
        if self.place is None and len(parts) != 2:
            raise ValueError(f"{self.name}: its text is {len(parts) - 1} times in {self.file}")
        first = (self.place or 0) + 1
        if first >= len(parts):
            raise ValueError(f"{self.name}: its text is only {len(parts) - 1} times in {self.file}")
        return self.after.join((self.before.join(parts[:first]), self.before.join(parts[first:])))


_ENTITIES: Final = "storage/sql/entities.py"
_BATCH: Final = "storage/sql/batch.py"
_DELEGATED: Final = "storage/cluster/function.py"
_ROWS: Final = "storage/sql/change_rows.py"
_FUNCTION: Final = "storage/sql/change_function.py"
_RESTORING: Final = "storage/sql/restoring.py"
_MOMENTS: Final = "storage/sql/moments.py"
_COMBINING: Final = "storage/sql/combining.py"
_LONG_KEYS: Final = "storage/sql/long_keys.py"
_ENTITY: Final = "storage/domain/entities/entity.py"
_CHANGES: Final = "storage/domain/entities/changes.py"
_ETAG: Final = "storage/domain/values/etag.py"
_EDITS: Final = "storage/entities/edits.py"
_WRITING: Final = "storage/entities/writing.py"
_PROTOCOL: Final = "storage/protocol/entities.py"
_HTTP_BATCH: Final = "storage/protocol/batch.py"

FAULTS: Final = (
    # single and combined statements
    Fault(
        "upsert-keeps-timestamp",
        _ENTITIES,
        "SET ts = {{after_inserted}}, props = excluded.props",
        "SET ts = e.ts, props = excluded.props",
    ),
    Fault("upsert-merge-exceeds-limits", _ENTITIES, "vals = {{merged}}\nWHERE {{fits}}", "vals = {{merged}}"),
    Fault("merge-exceeds-limits", _ENTITIES, "AND {is_expected} AND {fits}", "AND {is_expected}"),
    Fault("merge-ignores-if-match", _ENTITIES, "AND {is_expected} AND {fits}", "AND {fits}"),
    Fault("replace-ignores-if-match", _ENTITIES, "WHERE {same} AND {is_expected}\n", "WHERE {same}\n"),
    Fault("delete-ignores-if-match", _ENTITIES, 'f"{_DELETE_ANY} AND {{is_expected}}"', "_DELETE_ANY"),
    Fault(
        "insert-touches-existing",
        _ENTITIES,
        'f"{_INSERT_ROWS} ON CONFLICT DO NOTHING"',
        'f"{_INSERT_ROWS} ON CONFLICT (pk, rk) DO UPDATE SET ts = e.ts + 1"',
    ),
    Fault("replace-keeps-projection", _ENTITIES, "props = {props}, anns", "props = e.props || {props}, anns"),
    Fault(
        "merge-drops-projection",
        _ENTITIES,
        "SET ts = {after_now}, props = e.props || {props}",
        "SET ts = {after_now}, props = {props}",
    ),
    Fault(
        "merge-keeps-old-annotations",
        _ENTITIES,
        "anns = '', vals = {merged}\n{from_given}",
        "vals = {merged}\n{from_given}",
    ),
    Fault(
        "merge-of-typed-line-doubles-it",
        _ENTITIES,
        "split_part(split_part(line, '\\\"', 2), '@', 1)",
        "split_part(line, '\\\"', 2)",
    ),
    Fault(
        "merge-sorts-escapes-first",
        _ENTITIES,
        "ORDER BY replace({_NAME}, '\\\\u', '~') COLLATE",
        "ORDER BY {_NAME} COLLATE",
    ),
    Fault(
        "cosmos-merge-sorts",
        _ENTITIES,
        'AccountKind.COSMOS: "entity_merged_in_place({old}, {new})"',
        "AccountKind.COSMOS: _MERGED",
    ),
    Fault("merge-allows-253-properties", _ENTITIES, "<= 252 THEN true", "<= 253 THEN true"),
    Fault(
        "merge-ignores-properties-of-small-entities",
        _ENTITIES,
        "octet_length({{new}}) < 1764",
        "octet_length({{new}}) < 17640",
    ),
    Fault(
        "combined-merge-inserts-missing", _ENTITIES, "WHERE {{is_upsert}} AND NOT EXISTS", "WHERE NOT EXISTS"
    ),
    Fault(
        "combined-upsert-merge-inserts-nothing",
        _ENTITIES,
        '"t" if verb == "upsert_merge" else "f"',
        '"f" if verb == "upsert_merge" else "f"',
    ),
    Fault(
        "combined-delete-with-old-expected",
        _ENTITIES,
        "lambda it: (*it[:2], None, *it[2:])",
        'lambda it: (*it[:2], "5", *it[2:])',
    ),
    Fault(
        "reason-of-merge-is-turned-round",
        _ENTITIES,
        "CASE WHEN e.ts <> {{expected}} THEN",
        "CASE WHEN e.ts = {{expected}} THEN",
    ),
    Fault(
        "existing-is-told-as-missing",
        _ENTITIES,
        "        raise EntityAlreadyExists\n",
        "        raise ResourceNotFound\n",
    ),
    Fault(
        "missing-repeats-for-ever",
        _ENTITIES,
        "def _explain(result: Result) -> NoReturn:\n    if result.ntuples == 0:\n        raise ResourceNotFound",
        "def _explain(result: Result) -> NoReturn:\n    if result.ntuples == 0:\n        raise EntityAlreadyExists",
    ),
    Fault(
        "new-timestamp-may-be-the-old",
        _MOMENTS,
        'return f"greatest({ticks}, e.ts + 1)"',
        'return f"greatest({ticks}, e.ts)"',
    ),
    Fault(
        "no-statement-for-one-that-is-long",
        _ENTITIES,
        "if row.is_long or not is_possible:",
        "if not is_possible:",
    ),
    # their history
    Fault(
        "history-takes-inserts-for-updates",
        _ENTITIES,
        "CASE WHEN was IS NULL THEN '{Op.INSERT}' ELSE '{Op.UPDATE}' END",
        "'{Op.UPDATE}'",
    ),
    Fault(
        "history-of-delete-has-old-timestamp",
        _ENTITIES,
        "return moments.of_deletion(relation)",
        'return "e.ts"',
    ),
    Fault(
        "delete-answers-with-new-timestamp",
        _ENTITIES,
        'ticks = "was" if self.op is Op.DELETE else "ts"',
        'ticks = "ts"',
    ),
    Fault(
        "history-forgets-former-timestamp",
        _ENTITIES,
        '("was", f"{name}.anns, {name}.vals")',
        '("NULL::bigint", f"{name}.anns, {name}.vals")',
    ),
    Fault(
        "history-has-image-after",
        _ENTITIES,
        '", old.ts AS was, old.anns, old.vals"',
        '", old.ts AS was, e.anns, e.vals"',
    ),
    Fault(
        "combined-history-doubles-rows",
        _ENTITIES,
        "{name} JOIN given USING (pk, rk)",
        "{name} JOIN given USING (pk)",
    ),
    Fault(
        "combined-history-forgets-inserted",
        _ENTITIES,
        'for name in commands\n        )\n        parts.append(f"recorded',
        'for name in ("done",)\n        )\n        parts.append(f"recorded',
    ),
    # change sets
    Fault(
        "set-of-one-kind-ignores-if-match",
        _BATCH,
        "WHERE was IS NULL OR was <> expected",
        "WHERE was IS NULL",
    ),
    Fault("set-ignores-if-match", _BATCH, "(c.expected IS NULL OR was_ts = c.expected)", "true", 0),
    Fault(
        "set-tells-last-failure",
        _BATCH,
        "IF failed IS NULL OR c.i < failed THEN",
        "IF failed IS NULL OR c.i > failed THEN",
    ),
    Fault(
        "set-keeps-timestamp-of-later-entity", _BATCH, "(SELECT max(was) + 1 FROM", "(SELECT max(was) FROM"
    ),
    Fault(
        "set-answers-delete-with-new-timestamp",
        _BATCH,
        "CASE WHEN op = 'delete' THEN ts ELSE latest END",
        "latest",
    ),
    Fault(
        "set-history-forgets-former-timestamp",
        _BATCH,
        "latest, was, by_actor, in_request, p, rk, anns, vals\n",
        "latest, NULL, by_actor, in_request, p, rk, anns, vals\n",
    ),
    Fault(
        "set-history-takes-deletes-for-updates", _BATCH, "WHEN op = 'delete' THEN '{op.DELETE}' ELSE", "ELSE"
    ),
    Fault(
        "set-history-has-no-images",
        _BATCH,
        "before_vals := before_vals || was_vals;",
        "before_vals := before_vals || NULL::text;",
    ),
    Fault(
        "set-merges-missing-into-being",
        _BATCH,
        "op_of_all IN ('replace', 'merge', 'delete') AND EXISTS",
        "op_of_all IN ('replace', 'delete') AND EXISTS",
    ),
    Fault(
        "set-of-one-kind-skips-what-it-misses",
        _BATCH,
        "IF written_rks IS DISTINCT FROM rks OR op_of_all IN ('replace', 'merge', 'delete') AND EXISTS (\n"
        "                    SELECT FROM unnest(expecteds, before_ts) AS change (expected, was)\n"
        "                    WHERE was IS NULL OR was <> expected\n                )",
        "IF false",
    ),
    Fault(
        "set-of-one-kind-exceeds-limits",
        _BATCH,
        "WHERE e.ts < moment AND {fits_of_all}",
        "WHERE e.ts < moment",
    ),
    Fault(
        "set-exceeds-limits",
        _BATCH,
        "WHERE e.pk = p AND e.rk = c.rk AND {fits}",
        "WHERE e.pk = p AND e.rk = c.rk",
    ),
    Fault(
        "set-is-not-sorted",
        _BATCH,
        "order = sorted(range(len(rows)), key=lambda index: rows[index][1].key.row_key)",
        "order = list(range(len(rows)))",
    ),
    Fault(
        "set-mixes-up-timestamps",
        _BATCH,
        "for index, ticks in zip(order, applied",
        "for index, ticks in zip(range(len(order)), applied",
    ),
    Fault(
        "set-names-wrong-place",
        _BATCH,
        "order, None if only_inserts else operations, ordered",
        "range(len(order)), None if only_inserts else operations, ordered",
    ),
    Fault(
        "set-upsert-keeps-projection",
        _BATCH,
        "SET ts = {after}, props = c.props, anns = '', vals = c.vals",
        "SET ts = {after}, props = e.props || c.props, anns = '', vals = c.vals",
    ),
    Fault(
        "second-half-counts-from-nothing",
        _BATCH,
        "self._rows(self._count, changes)",
        "self._rows(0, changes)",
    ),
    Fault(
        "second-half-has-time-of-its-own",
        _BATCH,
        "moment := coalesce(given, {present});",
        "moment := {present};",
    ),
    # functions of distributed relations
    Fault(
        "delegated-timestamp-stands-still",
        _DELEGATED,
        "recorded_ts := greatest(moment, was_ts + 1);",
        "recorded_ts := greatest(moment, was_ts);",
    ),
    Fault("delegated-exceeds-limits", _DELEGATED, "IF octet_length(new_vals) >= 1764 THEN", "IF false THEN"),
    Fault("delegated-ignores-if-match", _DELEGATED, "(c.expected IS NULL OR was_ts = c.expected)", "true"),
    Fault(
        "delegated-tells-last-failure",
        _DELEGATED,
        "IF failed IS NULL OR c.i < failed THEN",
        "IF failed IS NULL OR c.i > failed THEN",
    ),
    Fault(
        "delegated-history-forgets-image",
        _DELEGATED,
        "recorded_op, in_request, was_anns, was_vals);",
        "recorded_op, in_request, NULL, NULL);",
    ),
    Fault(
        "delegated-refusal-keeps-the-others",
        _DELEGATED,
        "RAISE EXCEPTION USING ERRCODE = 'TB001';\n",
        "RETURN ARRAY['TB001', failed || ' ' || failure];\n",
    ),
    # rows of changes
    Fault(
        "function-forgets-if-match",
        _FUNCTION,
        "arrays.bigints([row.expected for row in rows])",
        "arrays.bigints([None for row in rows])",
    ),
    Fault(
        "delete-row-forgets-if-match",
        _ROWS,
        "_NO_FRAGMENTS, condition.expected, None",
        "_NO_FRAGMENTS, None, None",
    ),
    Fault("updates-keep-order-of-request", _ROWS, 'if verb != "insert":', 'if verb == "none":'),
    Fault("size-is-not-checked", _ROWS, "    check_size(entity, texts)\n", ""),
    Fault(
        "upserts-are-mixed-up",
        _ROWS,
        '"upsert_merge" if merge else "upsert"',
        '"upsert" if merge else "upsert_merge"',
    ),
    Fault("names-of-merge-are-not-escaped", _ROWS, '.replace("\\\\", "\\\\\\\\")', ""),
    Fault(
        "long-is-one-byte-less",
        _LONG_KEYS,
        "len(row_key.encode()) > KEY_LIMIT",
        "len(row_key.encode()) >= KEY_LIMIT",
    ),
    Fault("long-keys-are-longer", _LONG_KEYS, "KEY_LIMIT: Final = 2600", "KEY_LIMIT: Final = 2900"),
    Fault(
        "size-limit-is-more",
        _ENTITY,
        "entity_size(entity) > entity.kind.entity_size_limit",
        "entity_size(entity) > entity.kind.entity_size_limit + 1",
    ),
    Fault(
        "cosmos-is-sorted",
        _ENTITY,
        "if self.kind is AccountKind.COSMOS:\n            return self.fragments\n",
        "if False:\n            return self.fragments\n",
    ),
    Fault(
        "annotations-are-lost",
        _ENTITY,
        'annotation = "" if annotated is None else',
        'annotation = "" if annotated is not Edm.INT64 else',
    ),
    # combining
    Fault(
        "combined-loses-who-runs-alone",
        _COMBINING,
        "results.get(waiting.key, _ALONE)",
        "results.get(waiting.key)",
    ),
    Fault(
        "combined-has-a-key-twice",
        _COMBINING,
        "(is_write and first.key in keys)",
        "(False and first.key in keys)",
    ),
    # images
    Fault(
        "images-overwrite-newer-work",
        _RESTORING,
        "WHERE e.ts = given.expected\n    ORDER BY given.number\n    FOR UPDATE OF e\n), unready",
        "WHERE given.expected IS NOT NULL\n    ORDER BY given.number\n    FOR UPDATE OF e\n), unready",
    ),
    Fault(
        "images-rewrite-what-is-equal",
        _RESTORING,
        "AND was.new_vals IS NOT NULL AND was.new_vals <> {content_before}",
        "AND was.new_vals IS NOT NULL",
    ),
    Fault(
        "images-do-not-record-deletes",
        _RESTORING,
        "        UNION ALL SELECT '{Op.DELETE}', pk, rk, ts, was, anns, vals FROM deleted\n",
        "",
    ),
    Fault(
        "images-take-gone-for-changed",
        _RESTORING,
        "WHEN e.ts IS NULL THEN '{skip.GONE}'\n            ELSE",
        "ELSE",
    ),
    Fault(
        "images-count-skipped-as-unchanged",
        _RESTORING,
        "unchanged = given - inserted - changed - deleted - len(skipped)",
        "unchanged = given - inserted - changed - deleted",
    ),
    Fault(
        "images-keep-removed-in-projection",
        _RESTORING,
        "ELSE jsonb_strip_nulls(e.props || was.patch::jsonb)",
        "ELSE e.props || was.patch::jsonb",
    ),
    Fault(
        "images-delete-at-old-timestamp",
        _RESTORING,
        "now_of_deletion=moments.of_deletion(relation)",
        'now_of_deletion="e.ts"',
    ),
    Fault(
        "images-insert-over-existing-as-skipped-never",
        _RESTORING,
        "WHEN given.vals IS NULL THEN e.ts IS NOT NULL",
        "WHEN given.vals IS NULL THEN false",
    ),
    # many entities, and what people edit
    Fault(
        "write-many-does-not-count-skipped",
        _WRITING,
        "            result.skipped += 1\n",
        "            pass\n",
    ),
    Fault(
        "write-many-counts-all-as-changed", _WRITING, "changed = len(existing & done)", "changed = len(done)"
    ),
    Fault(
        "write-many-forgets-places",
        _WRITING,
        "result.refused.append((several[key][0], error))",
        "result.refused.append((0, error))",
    ),
    Fault(
        "write-many-writes-first-of-two",
        _WRITING,
        "        times[entity.key] = number + 1\n",
        "        times[entity.key] = number\n",
    ),
    Fault(
        "edit-merges-the-other-way",
        _EDITS,
        "{**read_stored(before).properties, **entity.properties}",
        "{**entity.properties, **read_stored(before).properties}",
    ),
    Fault(
        "edit-of-merge-forgets-if-match",
        _EDITS,
        "change.condition if isinstance(change, Update) else ANY",
        "ANY",
    ),
    Fault("edits-change-an-entity-twice", _EDITS, "if change.key in edits:", "if False:"),
    Fault("edits-name-place-in-partition", _EDITS, "[*edits].index(keys[failure.index])", "failure.index"),
    Fault(
        "edit-knows-unsorted-row",
        _EDITS,
        "write = write_stored if isinstance(self.change, Insert) else write_sorted",
        "write = write_stored",
    ),
    # the protocol
    Fault("put-merges", _PROTOCOL, 'merge = request.method != "PUT"', 'merge = request.method == "PUT"'),
    Fault(
        "if-match-is-ignored",
        _PROTOCOL,
        "Update(json_format.read_entity(members, key, dialect), condition, merge)",
        "Upsert(json_format.read_entity(members, key, dialect), merge)",
    ),
    Fault(
        "delete-without-if-match",
        _PROTOCOL,
        'if request.method == "DELETE" or request.version',
        "if request.version",
    ),
    Fault(
        "update-answers-without-etag",
        _PROTOCOL,
        "        return Answer(204, [etag])\n",
        "        return Answer(204, [])\n",
    ),
    Fault(
        "foreign-etag-matches-any",
        _ETAG,
        "        return Precondition(NEVER)\n    try",
        "        return ANY\n    try",
    ),
    Fault(
        "set-has-an-entity-twice",
        _CHANGES,
        "        if key.row_key in seen:\n            raise ChangeSetError(index, InvalidDuplicateRow())\n",
        "",
    ),
    Fault(
        "set-of-several-partitions",
        _CHANGES,
        "if its_table != table or key.partition_key != first.partition_key:",
        "if its_table != table:",
    ),
)

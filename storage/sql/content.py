"""Text of a stored row: one line per property, its annotation before its value; see domain.entities.entity.

The text is stored as sent, byte for byte: JSON in PostgreSQL loses ``-0.0``, exponents, U+0000 and lone
surrogates. Tabs surround an annotation. So a merge replaces and sorts lines without parsing JSON, a response
is a concatenation without line feeds and tabs, and a response without annotations omits the text between
tabs. An insert keeps the order of the request; any other write sorts by name, ordinal, as the service does;
in a Cosmos account each property stays in place.

Rows written before version 1.1, in tables and histories, keep annotations in the column ``anns``. They read
like all others; see the function entity_content, which puts each before its value.
"""

from typing import Final

from storage.sql.django import fetch


def content(row: str = "") -> str:
    """Return SQL for the text of a row, also in histories, where it may be null; ``row`` ends with a dot."""
    return f"CASE WHEN {row}anns = '' THEN {row}vals ELSE entity_content({row}anns, {row}vals) END"


CONTENT: Final = content()


def with_annotations(anns: bytes, vals: bytes) -> bytes:
    """Return the text of a row, as the function entity_content does."""
    if not anns:
        return vals
    by_name = {line.split(b'"')[1].partition(b"@")[0]: b"\t%b\t" % line for line in anns[1:].split(b"\n")}
    lines = ((line.split(b'"')[1], line) for line in vals[1:].split(b"\n"))
    return b"".join(b"\n%b%b" % (by_name.get(name, b""), line) for name, line in lines)


_ROWS: Final = 500  # that are looked at together
# Rows that another transaction has locked are skipped: it, or a later writer of the row, gives them their one text.
_REWRITE: Final = """
WITH next AS MATERIALIZED (
    SELECT pk, rk, anns <> '' AS is_old FROM {relation} WHERE {after} ORDER BY pk, rk LIMIT {rows}
), old AS MATERIALIZED (
    SELECT e.pk, e.rk FROM {relation} AS e JOIN next ON e.pk = next.pk AND e.rk = next.rk
    WHERE next.is_old ORDER BY e.pk, e.rk FOR UPDATE OF e SKIP LOCKED
), rewritten AS (
    UPDATE {relation} AS e SET anns = '', vals = entity_content(e.anns, e.vals)
    FROM old WHERE e.pk = old.pk AND e.rk = old.rk
)
SELECT pk, rk FROM next ORDER BY pk DESC, rk DESC LIMIT 1
"""


def rewrite(relation: str, after: list[str] | None) -> list[str] | None:
    """Rewrite the next rows after a key to one text; return the last key, or None if there are no more."""
    if after is None:
        rows = fetch(_REWRITE.format(relation=relation, after="true", rows=_ROWS))
    else:
        rows = fetch(_REWRITE.format(relation=relation, after="(pk, rk) > (%s, %s)", rows=_ROWS), *after)
    return list(rows[0]) if rows else None

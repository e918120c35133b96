"""The text of a row: a line for each property, its annotation in front of its value, as domain.entities.entity says.

The text holds what is sent, byte for byte: JSON in PostgreSQL loses ``-0.0``, exponents, U+0000 and lone surrogates. An
annotation stands between two tabs. So a merge replaces and sorts lines without parsing JSON, an answer is a
concatenation without line feeds and tabs, and one without annotations leaves out what is between the tabs. An insert
keeps the order of the request; any other write sorts by name, ordinal, as the service does; in a Cosmos account each
property stays at its place.

Rows that versions before 1.1 have written, in tables and in histories, keep their annotations in a column ``anns``.
They read like all others; see entity_content, the function that puts each before its value.
"""

from typing import Final

from storage.sql.django import fetch


def content(row: str = "") -> str:
    """Return SQL of the text of a row, which may be of history; null: it has none. ``row`` ends with a dot."""
    return f"CASE WHEN {row}anns = '' THEN {row}vals ELSE entity_content({row}anns, {row}vals) END"


CONTENT: Final = content()


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
    """Give the next rows after a key their one text; return the key of the last, None if there are no more."""
    if after is None:
        rows = fetch(_REWRITE.format(relation=relation, after="true", rows=_ROWS))
    else:
        rows = fetch(_REWRITE.format(relation=relation, after="(pk, rk) > (%s, %s)", rows=_ROWS), *after)
    return list(rows[0]) if rows else None

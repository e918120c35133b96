"""Application of images to a table: to undo changes, restore a snapshot, apply a comparison, or edit many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar, final

from storage.domain.entities.entity import EntityKey, Fragments, StoredEntity, encode_entity_key
from storage.domain.entities.restoring import Effect, Sample, Skip, Skipped
from storage.sql import arrays, moments
from storage.sql.content import content
from storage.sql.failures import ALONE
from storage.sql.history import RECORDED_COLUMNS, Op, Recorder, recorded_table
from storage.sql.lanes import SETTINGS
from storage.sql.long_keys import LONG_KEYS, SHORT_KEYS, is_long
from storage.sql.statement import Lane, Parameters, Result, Statement, integer_at, read_keys, text_at


@dataclass(frozen=True, slots=True)
class Images:
    """Images as a query of at most one row per entity, with ``$1`` placeholders."""

    text: str
    parameters: Parameters = ()
    # A query, without placeholders, of the keys that entities had before and after changes of their keys. The images of
    # such keys are applied together or not at all: otherwise an entity could be under both, or none.
    moves: str = ""
    before: Sequence[
        Statement[object]
    ] = ()  # statements that make relations of the session, which the query reads


# expected, though no entity has it: the entity is known to have newer work, and is left alone
NEWER: Final = -1


@final
@dataclass(frozen=True, slots=True)
class Span:
    """Range of images for one chunk, by their numbers in key order; moves share a number."""

    first: int
    last: int

    @property
    def parameters(self) -> tuple[str, str]:
        return str(self.first), str(self.last)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Number of entities by the effect of images, applied or predicted."""

    inserted: int
    changed: int
    deleted: int
    unchanged: int  # they were equal to their images
    skipped: int
    examples: list[Skipped]  # some of the skipped images, if they were looked at

    def __add__(self, other: "Chunk") -> "Chunk":
        numbers = {it.value: getattr(self, it.value) + getattr(other, it.value) for it in Effect}
        return Chunk(**numbers, examples=[*self.examples, *other.examples])


_CHUNK_BYTES: Final = 4 * 1024 * 1024
_LEAST_BYTES: Final = 4096  # the least size that counts for an image, so that no chunk has more than 1,024

CREATE: Final = """
CREATE TEMPORARY TABLE restored_images (
    number bigint NOT NULL,
    place bigint NOT NULL,
    chunk bigint NOT NULL,
    pk text COLLATE "C" NOT NULL,
    rk text COLLATE "C" NOT NULL,
    expected bigint,
    vals text,
    PRIMARY KEY (number, place)
)
"""
DROP: Final = "DROP TABLE IF EXISTS pg_temp.restored_images"

_TO_INSERT: Final = "expected IS NULL AND vals IS NOT NULL"
_PLACED: Final = """
placed AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY pk COLLATE "C", rk COLLATE "C") AS place, images.*
    FROM ({images}) AS images (pk, rk, expected, vals)
)
"""
_ALONE: Final = "numbered AS MATERIALIZED (SELECT place AS number, placed.* FROM placed)"
# the number of images that are applied together is the first of their places
_TOGETHER: Final = """
move AS MATERIALIZED (
    SELECT former.place AS former, latter.place AS latter
    FROM ({moves}) AS move (pk, rk, new_pk, new_rk)
    JOIN placed AS former ON former.pk = move.pk AND former.rk = move.rk
    JOIN placed AS latter ON latter.pk = move.new_pk AND latter.rk = move.new_rk
), link AS MATERIALIZED (
    SELECT former AS place, latter AS other FROM move UNION SELECT latter, former FROM move
), reached AS (
    SELECT place, other FROM link
    UNION SELECT reached.place, link.other FROM reached JOIN link ON link.place = reached.other
), leader AS MATERIALIZED (
    SELECT place, least(place, min(other)) AS number FROM reached GROUP BY place
), numbered AS MATERIALIZED (
    SELECT coalesce(leader.number, placed.place) AS number, placed.* FROM placed LEFT JOIN leader USING (place)
)
"""


def _numbered(images: Images) -> str:
    """Return the CTEs of a query that numbers the images as ``numbered``."""
    grouping = _TOGETHER.format(moves=images.moves) if images.moves else _ALONE
    return f"{_PLACED.format(images=images.text)}, {grouping}"


def settings_of(images: Images) -> str:
    """Return the planner settings for collecting or previewing images; empty for the settings of the lane."""
    return f"{SETTINGS[Lane.FILTER]}; SET enable_nestloop = off" if images.moves else ""


_COLLECT: Final = f"""
WITH RECURSIVE {{numbered}}, sized AS (
    SELECT *, sum(greatest(octet_length(vals), {_LEAST_BYTES})) OVER in_order / {_CHUNK_BYTES} AS chunk FROM numbered
    WINDOW in_order AS (ORDER BY number, place ROWS UNBOUNDED PRECEDING)
), collected AS (
    INSERT INTO restored_images (number, place, chunk, pk, rk, expected, vals)
    SELECT number, place, min(chunk) OVER (PARTITION BY number), pk, rk, expected, vals FROM sized
    RETURNING {_TO_INSERT} AND {LONG_KEYS} AS needs_room
)
SELECT count(*) FROM collected WHERE needs_room
"""
_SPANS: Final = "SELECT min(number), max(number) FROM restored_images GROUP BY chunk ORDER BY 1"
_MAKE_ROOM: Final = f"""
SELECT count(*) FROM (
    SELECT entity_make_room('{{relation}}', pk, rk, {ALONE}) FROM ({{given}}) AS given
    WHERE {_TO_INSERT} AND {LONG_KEYS}
    OFFSET 0
) AS made
"""
_COLLECTED: Final = """
SELECT number, pk, rk, expected, vals, NULL::text AS patch FROM restored_images
WHERE number BETWEEN $1::bigint AND $2::bigint
"""
_LISTED: Final = """
SELECT number, pk, rk, expected, vals, patch
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[])
    WITH ORDINALITY AS images (pk, rk, expected, vals, patch, number)
"""
# making all of the projection of an entity takes 15 times as long
_PROJECTION: Final = """CASE
    WHEN was.patch IS NULL THEN entity_projection(was.new_vals)
    ELSE jsonb_strip_nulls(e.props || was.patch::jsonb)
END"""
_LOCK: Final = """
SELECT given.number - 1 FROM ({given}) AS given JOIN {relation} AS e ON e.pk = given.pk AND e.rk = given.rk
WHERE e.ts = given.expected
ORDER BY given.number
FOR UPDATE OF e
"""

# Rows are locked in the order of their keys, and read as they are then. A locked row has the expected Timestamp, hence
# is the one that the rest of the statement sees.
_APPLY: Final = """
WITH given AS MATERIALIZED (
    {given}
), was AS MATERIALIZED (
    SELECT given.number, e.pk, e.rk, e.ts, e.anns, e.vals, given.vals AS new_vals, given.patch
    FROM given JOIN {relation} AS e ON e.pk = given.pk AND e.rk = given.rk
    WHERE e.ts = given.expected
    ORDER BY given.number
    FOR UPDATE OF e
), unready AS MATERIALIZED (
    SELECT number FROM given WHERE expected IS NOT NULL AND (pk, rk) NOT IN (SELECT pk, rk FROM was)
), {insertions}, held AS MATERIALIZED (
    SELECT number FROM unready
    UNION ALL SELECT number FROM given WHERE {to_insert} AND (pk, rk) NOT IN (SELECT pk, rk FROM inserted)
), changed AS (
    UPDATE {relation} AS e
    SET ts = {after_now}, props = {projection},
        anns = '', vals = was.new_vals
    FROM was
    WHERE e.pk = was.pk AND e.rk = was.rk
        AND was.number NOT IN (SELECT number FROM held)
        AND was.new_vals IS NOT NULL AND was.new_vals <> {content_before}
    RETURNING e.pk, e.rk, e.ts, was.ts AS was, was.anns, was.vals
), deleted AS (
    DELETE FROM {relation} AS e USING was
    WHERE e.pk = was.pk AND e.rk = was.rk AND was.new_vals IS NULL
        AND was.number NOT IN (SELECT number FROM held)
    RETURNING e.pk, e.rk, {now_of_deletion} AS ts, e.ts AS was, e.anns, e.vals
){recording}, skipped AS (
    SELECT given.pk, given.rk,
        CASE
            WHEN given.expected IS NULL AND (e.ts IS NOT NULL OR given.number NOT IN (SELECT number FROM unready))
                THEN '{skip.EXISTS}'
            WHEN given.expected IS NULL OR (given.pk, given.rk) IN (SELECT pk, rk FROM was) THEN '{skip.MOVED}'
            WHEN e.ts IS NULL THEN '{skip.GONE}'
            ELSE '{skip.CHANGED}'
        END AS reason
    FROM given LEFT JOIN {relation} AS e ON e.pk = given.pk AND e.rk = given.rk
    WHERE CASE
        WHEN given.expected IS NOT NULL THEN given.number IN (SELECT number FROM held)
        WHEN given.vals IS NULL THEN e.ts IS NOT NULL
        ELSE (given.pk, given.rk) NOT IN (SELECT pk, rk FROM inserted)
    END
)
SELECT (SELECT count(*) FROM inserted)::text, (SELECT count(*) FROM changed)::text,
    (SELECT count(*) FROM deleted)::text, (SELECT count(*) FROM given)::text
UNION ALL
SELECT pk, rk, reason, NULL FROM skipped
"""
_INSERTION: Final = """
INSERT INTO {relation}{child} AS e (pk, rk, ts, props, anns, vals)
SELECT pk, rk, {now}, entity_projection(vals), '', vals FROM given
WHERE {to_insert} AND {only} AND number NOT IN (SELECT number FROM unready)
ON CONFLICT DO NOTHING
RETURNING e.pk, e.rk, {timestamp} AS ts
"""
_RECORDING: Final = f"""
, recorded AS (
    INSERT INTO {{history}} {RECORDED_COLUMNS}
    SELECT {{table}}, op, ts, was, {{actor}}::integer, {{request}}::uuid, pk, rk, anns, vals FROM (
        SELECT '{Op.UPDATE}'::"char" AS op, pk, rk, ts, was, anns, vals FROM changed
        UNION ALL SELECT '{Op.DELETE}', pk, rk, ts, was, anns, vals FROM deleted
        UNION ALL SELECT '{Op.INSERT}', pk, rk, ts, NULL, NULL, NULL FROM inserted
    ) AS done
)
"""

_PREVIEW: Final = f"""
WITH RECURSIVE {{numbered}}, alone AS MATERIALIZED (
    SELECT i.number, i.pk, i.rk, CASE
        WHEN i.expected IS DISTINCT FROM e.ts THEN '{Effect.SKIPPED}'
        WHEN e.ts IS NULL THEN CASE WHEN i.vals IS NULL THEN '{Effect.UNCHANGED}' ELSE '{Effect.INSERTED}' END
        WHEN i.vals IS NULL THEN '{Effect.DELETED}'
        WHEN i.vals = {content("e.")} THEN '{Effect.UNCHANGED}'
        ELSE '{Effect.CHANGED}'
    END AS effect
    FROM numbered AS i
    LEFT JOIN LATERAL (SELECT * FROM {{relation}} AS e WHERE e.pk = i.pk AND e.rk = i.rk OFFSET 0) AS e ON true
), together AS (
    SELECT *, effect NOT IN ('{Effect.SKIPPED}', '{Effect.UNCHANGED}')
        AND bool_or(effect = '{Effect.SKIPPED}') OVER (PARTITION BY number) AS is_held
    FROM alone
), judged AS MATERIALIZED (
    SELECT pk, rk, is_held, CASE WHEN is_held THEN '{Effect.SKIPPED}' ELSE effect END AS effect FROM together
), sampled AS (
    SELECT *, row_number() OVER (PARTITION BY effect ORDER BY pk COLLATE "C", rk COLLATE "C") AS place FROM judged
)
SELECT effect, count(*)::text, NULL, NULL, NULL, NULL, NULL, NULL FROM judged GROUP BY effect
UNION ALL
SELECT s.effect, NULL, s.pk, s.rk, e.ts::text, {content("e.")}, i.vals,
    CASE
        WHEN s.effect <> '{Effect.SKIPPED}' THEN NULL
        WHEN s.is_held THEN '{Skip.MOVED}'
        WHEN e.ts IS NULL THEN '{Skip.GONE}'
        ELSE '{Skip.CHANGED}'
    END
FROM sampled AS s
JOIN numbered AS i ON i.pk = s.pk AND i.rk = s.rk
LEFT JOIN LATERAL (SELECT * FROM {{relation}} AS e WHERE e.pk = s.pk AND e.rk = s.rk OFFSET 0) AS e ON true
WHERE s.effect <> '{Effect.UNCHANGED}' AND s.place <= {{sample}}
ORDER BY 3 NULLS FIRST, 4
"""


_COUNT: Final = f"""
SELECT count(*) FILTER (WHERE {_TO_INSERT}),
    count(*) FILTER (WHERE expected <> {NEWER} AND vals IS NOT NULL),
    count(*) FILTER (WHERE expected <> {NEWER} AND vals IS NULL),
    count(*) FILTER (WHERE expected = {NEWER})
FROM ({{images}}) AS images
"""
_NEWER_KEYS: Final = f"""
SELECT pk, rk FROM ({{images}}) AS images WHERE expected = {NEWER}
ORDER BY pk COLLATE "C", rk COLLATE "C" LIMIT {{most}}
"""


def count(images: Images) -> Statement[Chunk]:
    """Return the statement that counts the effects of images, assuming no concurrent changes."""

    def read(result: Result) -> Chunk:
        inserted, changed, deleted, newer = (integer_at(result, 0, column) for column in range(4))
        return Chunk(inserted, changed, deleted, 0, newer, [])

    return Statement(_COUNT.format(images=images.text), images.parameters, Lane.FILTER, read)


def newer_keys(images: Images, most: int) -> Statement[list[EntityKey]]:
    """Return the statement for the first entities that were changed after their images."""
    text = _NEWER_KEYS.format(images=images.text, most=most)
    return Statement(text, images.parameters, Lane.FILTER, read_keys)


def preview(relation: str, images: Images, sample: int) -> Statement[tuple[Chunk, list[Sample]]]:
    """Return the statement that previews the effect of images, with up to ``sample`` entities per effect."""
    text = _PREVIEW.format(numbered=_numbered(images), relation=relation, sample=sample)
    return Statement(text, images.parameters, Lane.FILTER, _read_preview)


def _read_preview(result: Result) -> tuple[Chunk, list[Sample]]:
    numbers, samples = dict.fromkeys(Effect, 0), []
    for row in range(result.ntuples):
        effect = Effect(text_at(result, row, 0))
        if result.get_value(row, 1) is not None:
            numbers[effect] = integer_at(result, row, 1)
            continue
        key = EntityKey(text_at(result, row, 2), text_at(result, row, 3))
        ticks = result.get_value(row, 4)
        now, then = (_stored(key, ticks, result.get_value(row, column)) for column in (5, 6))
        reason = result.get_value(row, 7)
        samples.append(Sample(effect, key, now, then, None if reason is None else Skip(reason.decode())))
    return Chunk(**{effect.value: number for effect, number in numbers.items()}, examples=[]), samples


def _stored(key: EntityKey, ticks: bytes | None, content: bytes | None) -> StoredEntity | None:
    """Return a stored entity, None without content; an image has no known Timestamp."""
    return None if content is None else StoredEntity(encode_entity_key(key), ticks or b"0", content)


def collect(images: Images) -> Statement[bool]:
    """Return the statement that collects images after CREATE; its result tells whether long keys may be inserted."""
    text = _COLLECT.format(numbered=_numbered(images))
    return Statement(text, images.parameters, Lane.FILTER, lambda result: integer_at(result, 0, 0) > 0)


def spans() -> Statement[list[Span]]:
    """Return the statement that divides the images into chunks, in key order."""

    def read(result: Result) -> list[Span]:
        return [Span(integer_at(result, row, 0), integer_at(result, row, 1)) for row in range(result.ntuples)]

    return Statement(_SPANS, (), Lane.KEY, read)


_LEAVE_OUT: Final = """
DELETE FROM restored_images WHERE number IN (SELECT number FROM restored_images WHERE (pk, rk) <= ($1, $2))
"""
_AMONG: Final = """
SELECT i.pk, i.rk FROM restored_images AS i
JOIN unnest($3::text[], $4::text[]) AS given (pk, rk) ON i.pk = given.pk AND i.rk = given.rk
WHERE number BETWEEN $1::bigint AND $2::bigint
"""
_LAST_KEY: Final = """
SELECT pk, rk FROM restored_images WHERE number <= $1::bigint ORDER BY number DESC, place LIMIT 1
"""


def leave_out(upto: EntityKey) -> Statement[None]:
    """Return the statement that drops images applied before, up to a key and with their linked images."""
    return Statement(_LEAVE_OUT, (upto.partition_key, upto.row_key), Lane.KEY, lambda _: None)


def among(span: Span, keys: Sequence[EntityKey]) -> Statement[list[EntityKey]]:
    """Return the statement for the keys that have images in a chunk."""
    return Statement(_AMONG, (*span.parameters, *arrays.columns(keys)), Lane.KEY, read_keys)


def last_key(span: Span) -> Statement[EntityKey]:
    """Return the statement for the last key of a chunk; for linked images, the first of their keys."""
    return Statement(_LAST_KEY, (str(span.last),), Lane.KEY, lambda result: read_keys(result)[0])


_CONTENTS: Final = f"""
SELECT pk, rk, vals FROM restored_images
WHERE number BETWEEN $1::bigint AND $2::bigint AND vals IS NOT NULL AND expected IS DISTINCT FROM {NEWER}
"""
_CONVERT: Final = """
WITH given AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS given (pk, rk, vals)
), removed AS (
    DELETE FROM restored_images AS i USING given AS g WHERE i.pk = g.pk AND i.rk = g.rk AND g.vals IS NULL
)
UPDATE restored_images AS i SET vals = g.vals FROM given AS g
WHERE i.pk = g.pk AND i.rk = g.rk AND g.vals IS NOT NULL
"""
COLLECTED: Final = Images("SELECT pk, rk, expected, vals FROM restored_images")


class Content(NamedTuple):
    """New content of an entity as in its row; None if it is left out."""

    partition_key: str
    row_key: str
    text: str | None


def contents(span: Span) -> Statement[list[Content]]:
    """Return the statement for the contents that a chunk inserts or changes."""

    def read(result: Result) -> list[Content]:
        return [
            Content(*(text_at(result, row, column) for column in range(3))) for row in range(result.ntuples)
        ]

    return Statement(_CONTENTS, span.parameters, Lane.KEY, read)


def convert(new: Sequence[Content]) -> Statement[None]:
    """Return the statement that replaces the contents of images; those without content are dropped."""
    return Statement(_CONVERT, arrays.columns(new), Lane.KEY, lambda _: None)


class Image(NamedTuple):
    """Target state of an entity, as a row of Images."""

    partition_key: str
    row_key: str
    expected: int | None
    content: str | None
    patch: str | None = None  # the changes of its projection as a JSON object; null removes a property


Source = Span | Sequence[Image]  # the collected images of a chunk, or images in the order of keys


P = TypeVar("P", Span, Sequence[Image])


def halves(source: P) -> tuple[P, P] | None:
    """Divide images into halves; None if they are indivisible."""
    if isinstance(source, Span):
        middle = (source.first + source.last) // 2
        if source.first == source.last:
            return None
        return Span(source.first, middle), Span(middle + 1, source.last)
    middle = len(source) // 2
    return (source[:middle], source[middle:]) if middle else None


def inserts_long(images: Sequence[Image]) -> bool:
    """Return whether an entity with long keys is inserted, which requires ``make_room``."""
    return any(
        it.expected is None and it.content is not None and is_long(EntityKey(it.partition_key, it.row_key))
        for it in images
    )


class ListedImage(NamedTuple):
    """Image with its number, which linked images share, and its parts as in a row."""

    number: int
    key: EntityKey
    expected: int | None
    stored: StoredEntity | None
    fragments: Fragments


_LISTED_ROWS: Final = """
SELECT number, pk, rk, expected, vals, CASE WHEN vals IS NOT NULL THEN entity_projection(vals) END
FROM ({given}) AS given ORDER BY pk COLLATE "C", rk COLLATE "C"
"""


def listed(source: Source) -> Statement[list[ListedImage]]:
    """Return the statement for images in the order of their keys."""
    given = _given(source)

    def read(result: Result) -> list[ListedImage]:
        return [_read_image(result, row) for row in range(result.ntuples)]

    return Statement(_LISTED_ROWS.format(given=given.text), given.parameters, Lane.KEY, read)


def _read_image(result: Result, row: int) -> ListedImage:
    key = EntityKey(text_at(result, row, 1), text_at(result, row, 2))
    expected, content, projection = (result.get_value(row, column) for column in (3, 4, 5))
    fragments = Fragments((projection or b"{}").decode(), (content or b"").decode())
    stored = _stored(key, None, content)
    return ListedImage(
        integer_at(result, row, 0), key, None if expected is None else int(expected), stored, fragments
    )


def _given(source: Source) -> Images:
    if isinstance(source, Span):
        return Images(_COLLECTED, source.parameters)
    partition_keys, row_keys, expected, *texts = zip(*source, strict=True)
    parameters = (
        *map(arrays.texts, (partition_keys, row_keys)),
        arrays.bigints(expected),
        *map(arrays.texts, texts),
    )
    return Images(_LISTED, parameters)


def make_room(relation: str, source: Source) -> Statement[int]:
    """Return the statement that prepares inserts with long keys, before ``apply`` in its transaction."""
    given = _given(source)
    text = _MAKE_ROOM.format(relation=relation, given=given.text)
    return Statement(text, given.parameters, Lane.KEY, lambda result: integer_at(result, 0, 0))


def lock(relation: str, images: Sequence[Image]) -> Statement[list[int]]:
    """Return the statement that locks entities with the expected Timestamps; it yields their images' indexes."""
    given = _given(images)
    text = _LOCK.format(relation=relation, given=given.text)

    def read(result: Result) -> list[int]:
        return [integer_at(result, row, 0) for row in range(result.ntuples)]

    return Statement(text, given.parameters, Lane.KEY, read)


def apply(relation: str, source: Source, recorder: Recorder | None, *, has_long: bool) -> Statement[Chunk]:
    """Return the statement that makes a chunk equal to its images; ``has_long`` requires make_room before."""
    given, recording = _given(source), ""
    parameters = given.parameters
    if recorder is not None:
        recording = _RECORDING.format(
            history=recorder.relation,
            table=recorded_table(relation),
            actor=f"${len(parameters) + 1}",
            request=f"${len(parameters) + 2}",
        )
        parameters += recorder.parameters
    text = _APPLY.format(
        relation=relation,
        given=given.text,
        projection=_PROJECTION,
        content_before=content("was."),
        to_insert=_TO_INSERT,
        after_now=moments.after(moments.now(relation)),
        now_of_deletion=moments.of_deletion(relation),
        insertions=_insertions(relation, recorder, has_long=has_long),
        recording=recording,
        skip=Skip,
    )
    return Statement(text, parameters, Lane.KEY, _read_chunk)


def _insertions(relation: str, recorder: Recorder | None, *, has_long: bool) -> str:
    timestamp = "e.ts"
    if recorder is not None:
        timestamp = moments.in_order(recorder.relation, recorded_table(relation))

    def insertion(child: str, only: str) -> str:
        return _INSERTION.format(
            relation=relation,
            child=child,
            now=moments.now_of_insertion(relation),
            to_insert=_TO_INSERT,
            only=only,
            timestamp=timestamp,
        )

    if not has_long:
        return f"inserted AS ({insertion('', SHORT_KEYS)})"
    return f"""
    ordinary AS ({insertion("", SHORT_KEYS)}), long AS ({insertion("_long", LONG_KEYS)}),
    inserted AS (SELECT * FROM ordinary UNION ALL SELECT * FROM long)
    """


def _read_chunk(result: Result) -> Chunk:
    inserted, changed, deleted, given = (integer_at(result, 0, column) for column in range(4))
    skipped = [
        Skipped(EntityKey(text_at(result, row, 0), text_at(result, row, 1)), Skip(text_at(result, row, 2)))
        for row in range(1, result.ntuples)
    ]
    unchanged = given - inserted - changed - deleted - len(skipped)
    return Chunk(inserted, changed, deleted, unchanged, len(skipped), skipped)

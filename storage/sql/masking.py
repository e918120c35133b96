"""Masked copies of rows by the function entity_masked, and the search for unmasked values."""

from dataclasses import dataclass
from typing import Final

from storage.domain.entities.entity import (
    KEY_PROPERTIES,
    Entity,
    EntityKey,
    StoredEntity,
    encode_entity_key,
    quote_name,
)
from storage.domain.entities.masking import Mask, Rules
from storage.domain.values.encoding import escape
from storage.sql import arrays
from storage.sql.content import CONTENT
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at


@dataclass(frozen=True, slots=True)
class Masking:
    """Masking rules of a table, and a 32-byte secret that exists only while the branch is created."""

    rules: Rules
    secret: bytes

    def select(self, relation: str, condition: str, first: int) -> str:
        """Return a SELECT of masked rows; ``parameters`` are bound from ``$first``."""
        keys = [
            f"entity_masked_key({column}, decode(${first + 4}, 'hex')) AS {column}"
            if name in self.rules
            else column
            for name, column in zip(KEY_PROPERTIES, ("pk", "rk"), strict=True)
        ]
        arguments = ", ".join(f"${first + place}::text[]" for place in range(4))
        return f"""
SELECT {", ".join(keys)}, ts, masked.props, '' AS anns, masked.content AS vals
FROM (SELECT pk, rk, ts, props, {CONTENT} AS content FROM {relation} WHERE {condition}) AS e,
    entity_masked({arguments}, decode(${first + 4}, 'hex'), e.props, e.content) AS masked
"""

    @property
    def hashes_keys(self) -> bool:
        return any(name in self.rules for name in KEY_PROPERTIES)

    @property
    def parameters(self) -> tuple[str | bytes, ...]:
        """Return the parameters: names in projection and text form, masks, constants, and the secret."""
        properties = [name for name in self.rules if name not in KEY_PROPERTIES]
        return (
            arrays.texts(map(escape, properties)),
            arrays.texts(map(quote_name, properties)),
            arrays.texts(self.rules[name].mask.value for name in properties),
            arrays.texts(self.rules[name].text for name in properties),
            self.secret.hex(),
        )


# Strings only, and not the shortest: a number or a word of two letters is found anywhere
_SHORTEST: Final = 4
ORIGINALS: Final = 'CREATE TEMPORARY TABLE branch_original (value text COLLATE "C") ON COMMIT DROP'
ANALYZE: Final = "ANALYZE branch_original"
_COLLECT: Final = """
INSERT INTO branch_original
SELECT DISTINCT substr(value, 2) FROM {relation} AS e, LATERAL (
    SELECT e.props->>name AS value FROM unnest($1::text[]) AS name {keys}
) AS named
WHERE value LIKE 's%' AND length(value) > {shortest}
"""
_FIND: Final = """
WITH given AS (
    SELECT key AS name, substr(value, 2) AS value
    FROM {relation} AS e, LATERAL (
        SELECT key, value FROM jsonb_each_text(e.props) WHERE key <> ALL ($1::text[])
        UNION ALL SELECT 'PartitionKey', 's' || e.pk
        UNION ALL SELECT 'RowKey', 's' || e.rk
    ) AS member
    WHERE value LIKE 's%' AND length(value) > {shortest}
), parts AS (
    SELECT name, value FROM given
    UNION ALL
    SELECT name, address[1] FROM given, regexp_matches(value, '[[:alnum:]._%+-]+@[[:alnum:].-]+', 'g') AS address
    WHERE value LIKE '%@%' AND address[1] <> value
)
SELECT name, count(*) FROM parts WHERE value IN (SELECT value FROM branch_original) GROUP BY name ORDER BY name
"""


def collect_originals(relation: str, rules: Rules) -> Statement[int]:
    """Return the statement that collects original values of masked properties in a temporary relation."""
    names = [escape(name) for name in rules if name not in KEY_PROPERTIES]
    keys = "".join(
        f" UNION ALL SELECT 's' || e.{column}"
        for name, column in zip(KEY_PROPERTIES, ("pk", "rk"), strict=True)
        if name in rules
    )
    text = _COLLECT.format(relation=relation, keys=keys, shortest=_SHORTEST)
    return Statement(text, (arrays.texts(names),), Lane.FILTER, lambda result: result.ntuples)


def find_originals(relation: str, rules: Rules) -> Statement[list[tuple[str, int]]]:
    """Return the statement for the properties of a branch's table with original values, and their counts."""
    names = [escape(name) for name, rule in rules.items() if rule.mask in (Mask.NAME, Mask.PHONE)]
    text = _FIND.format(relation=relation, shortest=_SHORTEST)

    def read(result: Result) -> list[tuple[str, int]]:
        return [(text_at(result, row, 0), integer_at(result, row, 1)) for row in range(result.ntuples)]

    return Statement(text, (arrays.texts(names),), Lane.FILTER, read)


_ONE: Final = """
SELECT $1::text AS pk, $2::text AS rk, 0::bigint AS ts, $3::jsonb AS props, '' AS anns, $4::text AS vals
"""


def mask_one(masking: Masking, entity: Entity) -> Statement[StoredEntity]:
    """Return the statement that masks an entity, stored or not."""
    text = masking.select(f"({_ONE}) AS given", "true", first=5)

    def read(result: Result) -> StoredEntity:
        key = EntityKey(text_at(result, 0, 0), text_at(result, 0, 1))
        return StoredEntity(encode_entity_key(key), b"0", text_at(result, 0, 5).encode())

    return Statement(text, (*entity.key, *entity.fragments, *masking.parameters), Lane.KEY, read)

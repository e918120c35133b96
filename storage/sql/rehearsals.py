"""Statements of rehearsals: one counts a request before its operation, one records it before its answer."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from storage.domain.requests.cleaning import LEFT_OUT
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at

# requests of a client that are recorded; all are counted
RECORDED: Final = 50_000
# clients that are told apart, because a client can invent any number of names
CLIENTS: Final = 1_000


class Rate(NamedTuple):
    """Rate that a request counts towards."""

    rule: int  # its position
    scope: str  # digest of the account, table or partition
    limit: float  # entities a second


class Counted(NamedTuple):
    """Counts that include a request."""

    client: int
    number: int  # position among the client's requests, from 1
    matches: Sequence[int]  # for each rule, how many of them it is about
    exceeded: frozenset[int]  # rules above whose rates it is
    is_other: bool = False  # its client is counted together with others

    @property
    def is_recorded(self) -> bool:
        return self.number <= RECORDED and not self.is_other


# A bucket holds as much as its rate allows in a second. A request above it adds nothing, as it is refused.
# Both statements lock rates in the same order, so that they never wait for each other in a circle.
_COUNT: Final = f"""
WITH named AS (
    SELECT NOT EXISTS (
            SELECT FROM storage_rehearsalclient WHERE rehearsal_id = $1::bigint AND agent = $2 AND credential = $3
        ) AND (SELECT count(*) FROM storage_rehearsalclient WHERE rehearsal_id = $1::bigint) >= {CLIENTS} AS is_other
), counted AS (
    INSERT INTO storage_rehearsalclient AS c (rehearsal_id, agent, credential, requests, matches)
    SELECT $1::bigint, CASE WHEN is_other THEN '{LEFT_OUT}' ELSE $2 END, CASE WHEN is_other THEN '' ELSE $3 END,
        1, $4::jsonb
    FROM named
    ON CONFLICT (rehearsal_id, agent, credential) DO UPDATE
    SET requests = c.requests + 1,
        matches = (SELECT jsonb_agg(before::text::bigint + added::text::bigint ORDER BY place)
            FROM ROWS FROM (jsonb_array_elements(c.matches), jsonb_array_elements(EXCLUDED.matches))
                WITH ORDINALITY AS both_counts (before, added, place))
    RETURNING id, requests, matches
), sent AS (
    SELECT rule, scope, rate, $8::float8 AS cost, clock_timestamp() AS at
    FROM unnest($5::int[], $6::text[], $7::float8[]) AS rates (rule, scope, rate)
    ORDER BY rule, scope
), filled AS (
    INSERT INTO storage_rehearsalrate AS r (rehearsal_id, rule, scope, level, exceeded, at)
    SELECT $1::bigint, rule, scope, least(cost, rate), false, at FROM sent
    ON CONFLICT (rehearsal_id, rule, scope) DO UPDATE
    SET (level, exceeded, at) = (
        SELECT left_over + CASE WHEN is_over THEN 0 ELSE s.cost END, is_over, s.at
        FROM sent AS s
        CROSS JOIN LATERAL (SELECT greatest(0, r.level - s.rate * greatest(0, extract(epoch FROM s.at - r.at)))
            AS left_over) AS leaked
        CROSS JOIN LATERAL (SELECT left_over > 0 AND left_over + s.cost > s.rate AS is_over) AS judged
        WHERE s.rule = r.rule AND s.scope = r.scope)
    RETURNING rule, exceeded
)
SELECT id, requests, matches, coalesce((SELECT jsonb_agg(rule) FROM filled WHERE exceeded), '[]'), is_other
FROM counted CROSS JOIN named
"""

_RECORD: Final = """
WITH locked AS MATERIALIZED (
    SELECT r.id FROM storage_rehearsalrate AS r
    JOIN unnest($8::int[], $9::text[]) AS rates (rule, scope) ON r.rule = rates.rule AND r.scope = rates.scope
    WHERE $7::float8 > 0 AND r.rehearsal_id = $1::bigint
    ORDER BY r.rule, r.scope
    FOR UPDATE OF r
), charged AS (
    UPDATE storage_rehearsalrate AS r SET level = r.level + $7::float8 FROM locked WHERE r.id = locked.id
)
INSERT INTO storage_rehearsedrequest (rehearsal_id, client_id, number, at, request_id, exchange)
SELECT $1::bigint, $2::bigint, $3::bigint, to_timestamp($4::float8), $5::uuid, $6::jsonb
"""


def count(
    rehearsal: int, agent: str, credential: str, matches: Sequence[int], rates: Sequence[Rate], cost: float
) -> Statement[Counted]:
    """Count a request of a client, for each rule (0 or 1), and towards rates."""
    rules, scopes, limits = _columns(rates)
    parameters = (
        str(rehearsal),
        agent,
        credential,
        json.dumps(list(matches)),
        rules,
        scopes,
        limits,
        str(cost),
    )
    return Statement(_COUNT, parameters, Lane.KEY, _read_counted)


def _columns(rates: Sequence[Rate]) -> tuple[str, str, str]:
    """Return the columns of rates as literals of arrays; none of their values needs quotes."""
    rows = [*zip(*rates, strict=True)] or [(), (), ()]
    rules, scopes, limits = ("{" + ",".join(map(str, column)) + "}" for column in rows)
    return rules, scopes, limits


def _read_counted(result: Result) -> Counted:
    return Counted(
        integer_at(result, 0, 0),
        integer_at(result, 0, 1),
        json.loads(text_at(result, 0, 2)),
        frozenset(json.loads(text_at(result, 0, 3))),
        text_at(result, 0, 4) == "t",
    )


def record(
    rehearsal: int,
    counted: Counted,
    began: float,
    request_id: str,
    exchange: str,
    charge: float,
    rates: Sequence[Rate],
) -> Statement[None]:
    """Record a request, and charge rates for entities that it has read."""
    rules, scopes, _ = _columns(rates)
    parameters = (
        str(rehearsal), str(counted.client), str(counted.number), str(began), request_id, exchange, str(charge),
        rules, scopes,
    )  # fmt: skip
    return Statement(_RECORD, parameters, Lane.KEY, lambda _: None)

"""Estimates of a query's reads and results: the planner's numbers, corrected by a sample."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from storage.domain.filters.access_plan import plan_access
from storage.domain.filters.keys import key_range
from storage.domain.filters.query import PAGE_LIMIT, EntityQuery
from storage.entities.time_budget import TimeBudget
from storage.models import Table
from storage.sql import estimates, pages
from storage.sql.estimates import ScanKind as ScanKind
from storage.sql.relations import relation_of
from storage.tables.indexes import using

LIMIT: Final = timedelta(milliseconds=200)  # for all statements together
_COUNTED: Final = 2_000  # rows that are counted or sampled rather than guessed


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated cost of a query."""

    returned: int
    read: int  # rows inside the key range, as Azure reads them
    looked_at: int  # rows that PostgreSQL reads
    scan_kind: ScanKind

    @property
    def transactions(self) -> int:
        """Return the number of requests on Azure, each reading at most a thousand entities."""
        return self.read // PAGE_LIMIT + 1


def estimate(
    table: Table, entity_query: EntityQuery, clock: Callable[[], float] = time.monotonic
) -> Estimate | None:
    """Estimate a query; None if planning exceeds the time limit."""
    if key_range(entity_query.filter).is_empty:
        return Estimate(0, 0, 0, ScanKind.KEYS)
    query = replace(using(table, entity_query), top=PAGE_LIMIT, start=None, end=None)
    return _Estimator(relation_of(table), query, clock).estimate()


class _Estimator:
    def __init__(self, relation: str, query: EntityQuery, clock: Callable[[], float]) -> None:
        self.relation = relation
        self.query = query
        self._run = TimeBudget(LIMIT, clock).run

    def estimate(self) -> Estimate | None:
        plan = self._run(estimates.plan(self.relation, self.query))
        read = self._run(estimates.in_range(self.relation, self.query))
        if plan is None or read is None:
            return None
        if plan_access(self.query.filter).is_by_keys:
            read = returned = self._counted(read)
        else:
            read, returned = self._sampled(read, plan)
        return Estimate(min(returned, read), read, self._looked_at(plan, read), plan.scan_kind)

    def _looked_at(self, plan: estimates.Plan, read: int) -> int:
        if plan.looked_at is not None:
            return plan.looked_at
        if plan.scan_kind is ScanKind.KEYS:
            return read
        return max(read, self._run(estimates.in_range(self.relation, EntityQuery())) or 0)

    def _counted(self, expected: int) -> int:
        """Return the exact count of a small result, otherwise the estimate."""
        number = self._run(estimates.matching(self.relation, self.query, limit=_COUNTED))
        if number is None:
            return expected
        return number if number < _COUNTED else max(number, expected)

    def _sampled(self, read: int, plan: estimates.Plan) -> tuple[int, int]:
        """Return the rows in range and the number that match, estimated from a sample."""
        first = self._sample(100.0, _COUNTED)
        if first is not None and first.rows < _COUNTED:
            return first
        read = max(read, _COUNTED)
        if pages.is_indexed(self.query):
            number = self._counted(plan.matching)
            if number < _COUNTED or plan.scan_kind in (ScanKind.PROPERTIES, ScanKind.INDEX):
                return read, number
        # a sample of all pages, because the first rows may differ from the last
        spread = self._sample(100.0 * _COUNTED / read, 5 * _COUNTED) or first
        if not spread or not spread.rows:
            return read, plan.matching
        if not spread.matching:
            return read, min(plan.matching, read // spread.rows)
        return read, read * spread.matching // spread.rows

    def _sample(self, share: float, limit: int) -> estimates.Sample | None:
        return self._run(estimates.sample(self.relation, self.query, share=share, limit=limit))

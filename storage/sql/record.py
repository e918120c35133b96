"""Record of an account's changes, read as one relation: its segments, oldest first.

A statement names the segments that it needs. They are in the order of ``seq``, because a segment is written
to only after the previous one has ended, so that the search for the next change of an entity ends with the
first match. A view over all segments cannot do that: it looks into each of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

# a hash of an entity's keys; the index of a segment has it instead of the keys, which may be too long for an entry
KEY_HASH: Final = "hashtextextended({row}pk, hashtextextended({row}rk, 0))"


def segment_name(account_id: int, number: int) -> str:
    return f"history_{account_id}_{number}"


class HasGap(Protocol):
    @property
    def is_broken(self) -> bool: ...


S = TypeVar("S", bound=HasGap)


def after_last_gap(segments: Sequence[S]) -> Sequence[S]:
    """Return the segments since the last gap, oldest first."""
    gaps = (place for place, it in enumerate(segments, start=1) if it.is_broken)
    return segments[max(gaps, default=0) :]


@dataclass(frozen=True, slots=True)
class Record:
    """Relations with the wanted changes, in order of time; a change is the row ``h`` in SQL."""

    segments: tuple[str, ...] = ()

    @classmethod
    def of(cls, account_id: int, numbers: Iterable[int]) -> "Record":
        return cls(tuple(segment_name(account_id, number) for number in numbers))

    def __bool__(self) -> bool:
        return bool(self.segments)

    def changes(self, columns: str, condition: str, ending: str = "") -> str:
        """Return the query of matching changes; ``ending`` may sort and limit them per segment."""
        member = f"(SELECT {columns} FROM {{segment}} AS h WHERE {condition} {ending})"
        return " UNION ALL ".join(member.replace("{segment}", it) for it in self.segments)

    def first(self, columns: str, condition: str, *, if_: str = "true") -> str:
        """Return the query of the first matching change, which skips later segments."""
        # the members of UNION ALL are read one after another
        members = self.changes(f"h.seq, {columns}", condition, "ORDER BY h.seq LIMIT 1")
        return f"SELECT * FROM ({members}) AS change WHERE {if_} LIMIT 1"


def is_of(table: object, partition_key: str, row_key: str) -> str:
    """Return the condition that a change is of an entity; ``table`` is an id, keys are SQL expressions."""
    return f"h.tbl = {table} AND {has_keys(partition_key, row_key)}"


def has_keys(partition_key: str, row_key: str) -> str:
    """Return the condition that a change has these keys, given as SQL expressions."""
    wanted = f'hashtextextended({partition_key} COLLATE "C", hashtextextended({row_key} COLLATE "C", 0))'
    return f"{KEY_HASH.format(row='h.')} = {wanted} AND h.pk = {partition_key} AND h.rk = {row_key}"


def is_unseen(parameter: str) -> str:
    """Return the condition that a change is not visible in the snapshot of a parameter."""
    snapshot = f"{parameter}::pg_snapshot"
    return f"h.xid >= pg_snapshot_xmin({snapshot}) AND NOT pg_visible_in_snapshot(h.xid, {snapshot})"

"""How far the tables of a copy are: kept beside the account, so that the next copy goes on, or copies what changed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

from storage.models import Account, CopiedTable


class Phase(StrEnum):
    """What is being done to a table."""

    COPY = "copy"
    SETTLE = "settle"  # entities that the source does not have, policies, and the comparison at the end
    DONE = "done"


@dataclass(frozen=True, slots=True)
class CopiedPair:
    """A table, by its names at both ends."""

    source: str
    target: str


@dataclass(slots=True)
class TableProgress:
    """``next``: where the next page begins. ``mark``: the clock of the source when this pass began, ``since`` of which
    time changes are read, 0 for everything. ``table``: the number of the target, to notice that it was made again.

    ``feed``: the token after which the change feed of the source has what is not copied; ``by_feed``: this pass reads
    it. ``is_continued``: the pass was begun by an earlier job, so that what has changed since is read after it.
    ``left``: entities that were deleted at the source and not here.

    ``entities`` and ``checksum`` are of what the target should have, as far as it was read from the source; the other
    numbers are of the last run. ``changed`` are at another service all that were written into a table that existed,
    because it does not tell which of them did. ``differing``, ``missing`` and ``extra`` (which the source does not
    have) are what the comparison at the end found; ``verified`` is None without one.
    """

    filter: str = ""
    phase: Phase = Phase.COPY
    table: int = 0
    next: Sequence[str] = ()
    mark: float = 0
    since: float = 0
    feed: str = ""
    by_feed: bool = False
    is_continued: bool = False
    left: int = 0
    entities: int = 0
    checksum: str = "0"
    read: int = 0
    inserted: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    rejected: int = 0
    differing: int = 0
    missing: int = 0
    extra: int = 0
    verified: bool | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, written: Mapping[str, Any]) -> Self:
        return cls(**{**written, "phase": Phase(written["phase"])})

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    def begin_run(self, filter_: str, *, is_full: bool) -> None:
        """Go on where the last run stopped; if it had read everything, read what has changed since it began."""
        is_complete = self.phase is not Phase.COPY
        starts_over = is_full or self.filter != filter_ or (is_complete and not self.mark)
        since = 0.0 if starts_over else self.mark if is_complete else self.since
        begins = starts_over or is_complete
        names: tuple[str, ...] = () if starts_over else ("entities", "checksum", "table", "feed", "left")
        if not begins:
            names += ("next", "mark", "phase", "by_feed")
        kept = {name: getattr(self, name) for name in names}
        if is_complete and not starts_over:
            kept["by_feed"] = bool(self.feed)
        fresh = type(self)(filter=filter_, since=since, **kept)
        fresh.is_continued = bool(fresh.next)
        self._become(fresh)

    def end_pass(self) -> None:
        """Go on to the end of the table; after a pass of two jobs, first to what changed between them."""
        if not self.is_continued:
            self.phase = Phase.SETTLE
            return
        self.is_continued, self.by_feed = False, bool(self.feed)
        self.since, self.mark = self.mark, 0
        if not self.since:
            self.entities, self.checksum = 0, "0"

    def start_over(self) -> None:
        """Read everything, because the target is not the table that was copied into."""
        self._become(type(self)(filter=self.filter, notes=self.notes))

    def _become(self, other: Self) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))

    def describe(self, pair: CopiedPair) -> dict[str, Any]:
        """Return what the result of a job has of the table."""
        names = (
            *("read", "inserted", "changed", "unchanged", "deleted", "rejected"),
            *("entities", "differing", "missing", "extra", "verified", "notes"),
        )
        return {
            "source": pair.source,
            "target": pair.target,
            **{name: getattr(self, name) for name in names},
            "is_full": not self.since,
            "phase": self.phase.value,
        }


def begin(
    account: Account,
    pair: CopiedPair,
    *,
    is_outgoing: bool,
    service: str,
    job: int,
    filter_: str,
    is_full: bool,
) -> tuple[CopiedTable, TableProgress]:
    """Find how far a table is; a job that goes on finds it as it has left it."""
    row, is_new = CopiedTable.objects.get_or_create(
        account=account,
        is_outgoing=is_outgoing,
        service=service,
        source=pair.source,
        target=pair.target,
        defaults={"job": job, "progress": TableProgress(filter=filter_).dump()},
    )
    progress = TableProgress.load(row.progress)
    if not is_new and row.job != job:
        progress.begin_run(filter_, is_full=is_full)
        row.job = job
        save(row, progress)
    return row, progress


def save(row: CopiedTable, progress: TableProgress) -> None:
    row.progress = progress.dump()
    row.save(update_fields=("progress", "job", "updated_at"))


def find_latest_job(account: Account, *, is_outgoing: bool, service: str) -> int | None:
    """Return the job that was the last to work on a table between an account and a service."""
    found = CopiedTable.objects.filter(account=account, is_outgoing=is_outgoing, service=service)
    return found.order_by("-updated_at").values_list("job", flat=True).first()


def of_job(job: int) -> list[dict[str, Any]]:
    """Return how far the tables of a job are, by name."""
    found = CopiedTable.objects.filter(job=job).order_by("source", "target")
    return [TableProgress.load(it.progress).describe(CopiedPair(it.source, it.target)) for it in found]

"""Progress of copied tables, stored with the account, so that a later copy resumes or copies only changes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

from storage.models import Account, CopiedTable


class Phase(StrEnum):
    """The phases of copying a table."""

    COPY = "copy"
    SETTLE = "settle"  # entities that the source does not have, policies, and the comparison at the end
    DONE = "done"


@dataclass(frozen=True, slots=True)
class CopiedPair:
    """Table of a copy, with its name on both sides."""

    source: str
    target: str


@dataclass(slots=True)
class TableProgress:
    """Progress of copying a table; uncommented numbers belong to the last run."""

    filter: str = ""
    phase: Phase = Phase.COPY
    table: int = 0  # the number of the target, to notice that it was created again
    next: Sequence[str] = ()  # the position at which the next page begins
    mark: float = 0  # the clock of the source when this pass began
    since: float = 0  # the time from which on this pass reads changes; 0 for everything
    # the token after which the change feed of the source has the changes that are not copied yet
    feed: str = ""
    by_feed: bool = False  # whether this pass reads the change feed
    # whether an earlier job began the pass, so that later changes are read after it
    is_continued: bool = False
    left: int = 0  # entities that were deleted at the source and not here
    entities: int = 0  # number that the target should have, as far as the source was read
    checksum: str = "0"  # checksum of the same entities, in hexadecimal
    read: int = 0
    inserted: int = 0
    # at another service, this counts all that were written into a table that existed: it does not tell which changed
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    rejected: int = 0
    differing: int = 0  # result of the comparison at the end, as are ``missing`` and ``extra``
    missing: int = 0
    extra: int = 0  # entities that the source does not have
    verified: bool | None = None  # None without a comparison at the end
    notes: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, written: Mapping[str, Any]) -> Self:
        return cls(**{**written, "phase": Phase(written["phase"])})

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    def begin_run(self, filter_: str, *, is_full: bool) -> None:
        """Start a run: resume where the last one stopped, or read only changes since a complete one began."""
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
        """Advance to the settling phase, or first to changes made between two jobs."""
        if not self.is_continued:
            self.phase = Phase.SETTLE
            return
        self.is_continued, self.by_feed = False, bool(self.feed)
        self.since, self.mark = self.mark, 0
        if not self.since:
            self.entities, self.checksum = 0, "0"

    def start_over(self) -> None:
        """Restart, as the target is not the table that was copied into before."""
        self._become(type(self)(filter=self.filter, notes=self.notes))

    def _become(self, other: Self) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))

    def describe(self, pair: CopiedPair) -> dict[str, Any]:
        """Return the table's part of a job's result."""
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
    """Load or create the progress of a table; a different job starts a new run."""
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
    """Return the job that last worked on a copy between an account and a service."""
    found = CopiedTable.objects.filter(account=account, is_outgoing=is_outgoing, service=service)
    return found.order_by("-updated_at").values_list("job", flat=True).first()


def of_job(job: int) -> list[dict[str, Any]]:
    """Return the progress of a job's tables by name."""
    found = CopiedTable.objects.filter(job=job).order_by("source", "target")
    return [TableProgress.load(it.progress).describe(CopiedPair(it.source, it.target)) for it in found]

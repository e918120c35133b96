"""Content of an archive: base backups, the WAL segments since, and the times that it can restore."""

import json
import struct
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from storage.backups.archive import Period
from storage.server.archive.archive_store import BASES, LOG, SEGMENT, SUFFIX, TIMELINES, Archive, NotAnArchive
from storage.server.refusal import Refusal

_PER_LOG: Final = (1 << 32) // SEGMENT
_STAMP: Final = "%Y-%m-%dT%H-%M-%S.%fZ"
_COARSENESS: Final = timedelta(seconds=1)  # file systems round times
_FOREVER: Final = datetime.max.replace(tzinfo=UTC)
# the header of a segment: magic, flags, timeline, address, rest of a record, and the system identifier
_HEADER: Final = struct.Struct("=HHIQI4xQ")


class Segment(NamedTuple):
    timeline: int
    number: int

    @property
    def name(self) -> str:
        return f"{self.timeline:08X}{self.number // _PER_LOG:08X}{self.number % _PER_LOG:08X}"

    @classmethod
    def parse(cls, name: str) -> "Segment | None":
        """Parse the name of a WAL segment; None for other names."""
        try:
            timeline, log, number = (int(name[at : at + 8], 16) for at in (0, 8, 16))
        except ValueError:
            return None
        segment = cls(timeline, log * _PER_LOG + number)
        return segment if segment.name == name else None


class BaseBackup(NamedTuple):
    """Base backup in the archive."""

    name: str
    finished_at: datetime
    timeline: int
    first: int  # numbers of the first and the last segment that make the copy consistent
    last: int
    size: int  # bytes

    @classmethod
    def read(cls, text: bytes) -> "BaseBackup":
        content = json.loads(text)
        return cls(**{**content, "finished_at": datetime.fromisoformat(content["finished_at"])})

    def in_json(self) -> str:
        return json.dumps({**self._asdict(), "finished_at": self.finished_at.isoformat()})


class Use(NamedTuple):
    """Period in which servers used a timeline; the current period ends in the far future."""

    timeline: int
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a restore: segments to replay, in order, over a base backup."""

    base: BaseBackup
    timeline: int
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Catalog:
    archive: Archive
    system: str
    bases: Sequence[BaseBackup]  # the oldest first
    uses: Sequence[Use]
    segments: Mapping[Segment, int]  # bytes
    forks: Mapping[
        int, Mapping[int, int]
    ]  # per timeline: its ancestors, and the segment in which each was left

    @classmethod
    def read(cls, archive: Archive) -> "Catalog":
        """Read the catalog of an archive; raises NotAnArchive if there is none or its format is newer."""
        try:
            system = archive.open().system
            segments: dict[Segment, int] = {}
            forks: dict[int, Mapping[int, int]] = {}
            for file, size in archive.names(LOG).items():
                name = file.removesuffix(SUFFIX)
                if (segment := Segment.parse(name)) is not None:
                    segments[segment] = size
                elif name.endswith(".history"):
                    forks[int(name[:8], 16)] = read_forks(archive.read_history(name))
            bases = [BaseBackup.read(archive.read_once(BASES, f"{it}.json")) for it in archive.bases()]
            uses = read_uses(archive)
        except Refusal as refusal:
            raise NotAnArchive(str(refusal)) from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise NotAnArchive(f"The archive {archive.location} cannot be read: {error}.") from None
        return cls(archive, system, sorted(bases, key=lambda it: it.finished_at), uses, segments, forks)

    def time_of(self, segment: Segment) -> datetime:
        """Return the time of a segment's last record."""
        return self.archive.time_of(segment.name)

    def read_segment(self, segment: Segment) -> bytes:
        """Read a segment; raises Refusal if it is missing, damaged or another one."""
        content = self.archive.read_segment(segment.name)
        _, _, _, address, _, system = _HEADER.unpack_from(content)
        if (address, str(system)) != (segment.number * SEGMENT, self.system):
            raise Refusal(
                f"{self.archive.location}/{LOG}/{segment.name}{SUFFIX} is not the part of the log that its name says."
            )
        return content

    @property
    def size(self) -> int:
        """Return the bytes of all base backups and segments."""
        return sum(it.size for it in self.bases) + sum(self.segments.values())

    def periods(self) -> list[Period]:
        """Return the periods in which every moment can be restored, oldest first; they begin with a whole second.

        Texts have no fractions, and what they say can be restored.
        """
        periods: list[Period] = []
        for use in self.uses:
            chain: list[Segment] = []
            for base in self.bases_for(use.timeline):
                if (
                    not chain or not chain[0].number <= base.first <= chain[-1].number
                ):  # else it has the same end
                    chain = self._chain(base, use.timeline)
                if not chain or chain[-1].number < base.last:
                    continue
                start, end = max(base.finished_at, use.start), min(self.time_of(chain[-1]), use.end)
                if periods and periods[-1].start <= start <= periods[-1].end:
                    periods[-1] = Period(periods[-1].start, max(end, periods[-1].end))
                elif start < end:
                    periods.append(Period(start, end))
        whole = (Period(_round_up(it.start), it.end) for it in periods)
        return sorted(it for it in whole if it.start < it.end)

    def missing(self, base: BaseBackup) -> list[Segment]:
        """Return the missing segments since a base backup on the current timeline."""
        return self._missing(base, self.uses[-1].timeline) if self.uses else []

    def gaps(self) -> list[Segment]:
        """Return the missing segments since all base backups, on all timelines that servers used."""
        timelines = {it.timeline for it in self.uses}
        return sorted(
            {
                it
                for timeline in timelines
                for base in self.bases_for(timeline)
                for it in self._missing(base, timeline)
            }
        )

    def _missing(self, base: BaseBackup, timeline: int) -> list[Segment]:
        last = max((it.number for it in self.segments if it.timeline == timeline), default=-1)
        segments = (self._segment(timeline, number) for number in range(base.first, last + 1))
        return [it for it in segments if it not in self.segments]

    def plan(self, moment: datetime | None) -> list[Plan]:
        """Return the plans to restore a moment or the latest state, fastest first; empty if that is impossible."""
        uses = [it for it in self.uses if moment is None or it.start <= moment < it.end]
        if not uses:
            return []
        timeline = uses[-1].timeline
        plans = []
        for base in reversed(self.bases_for(timeline)):
            chain = self._chain(base, timeline)
            if len(chain) <= base.last - base.first:
                continue
            if moment is not None:
                needed = bisect_left(chain, moment, key=self.time_of) + 1
                if base.finished_at > moment or needed > len(chain):
                    continue
                chain = chain[: max(needed, base.last - base.first + 1)]
            plans.append(Plan(base, timeline, chain))
        return plans

    def needed_bases(self, since: datetime) -> set[BaseBackup]:
        """Return the base backups needed to restore any moment since a time."""
        moments = [since, *(it.start for it in self.uses if it.start > since)]
        kept = {it for it in self.bases if it.finished_at >= since}
        for moment in moments:
            kept |= {it.base for it in self.plan(moment)[:1]}
        # the first base of a moment that is not archived yet
        return kept | set(self.bases[-1:])

    def bases_for(self, timeline: int) -> list[BaseBackup]:
        """Return the base backups from which the WAL leads to a timeline."""
        forks = self.forks.get(timeline, {})
        return [it for it in self.bases if it.timeline == timeline or it.last < forks.get(it.timeline, 0)]

    def goes_back(self, plan: Plan, number: int, moment: datetime) -> bool:
        """Return whether a segment from a number on ends before a moment: the clock was set back."""
        later = (it for it in self._chain(plan.base, plan.timeline) if it.number >= number)
        return any(self.time_of(it) < moment - _COARSENESS for it in later)

    def _chain(self, base: BaseBackup, timeline: int) -> list[Segment]:
        """Return the segments from a base backup up to the first gap."""
        chain = []
        number = base.first
        while (segment := self._segment(timeline, number)) in self.segments:
            chain.append(segment)
            number += 1
        return chain

    def _segment(self, timeline: int, number: int) -> Segment:
        """Return the segment that a timeline reads at a number: before the fork, the ancestor's."""
        older = (it for it, fork in sorted(self.forks.get(timeline, {}).items()) if number < fork)
        return Segment(next(older, timeline), number)


def _round_up(moment: datetime) -> datetime:
    """Return the first whole second that is not before a moment."""
    return moment + timedelta(microseconds=-moment.microsecond % 1_000_000)


def number_of(position: str) -> int:
    """Return the number of the segment that contains a WAL position such as 0/3000028."""
    high, low = (int(it, 16) for it in position.split("/"))
    return ((high << 32) + low) // SEGMENT


def name_of_use(timeline: int, start: datetime) -> str:
    return f"{start.strftime(_STAMP)}.{timeline:08X}"


def read_uses(archive: Archive) -> list[Use]:
    """Read when servers used which timeline, oldest first."""
    starts = []
    for name in sorted(it for it in archive.names(TIMELINES) if not it.startswith(".")):
        if archive.is_sealed:
            archive.read_once(TIMELINES, name)  # raises Refusal for a forged one
        stamp, _, timeline = name.rpartition(".")
        starts.append((datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC), int(timeline, 16)))
    ends = [*(start for start, _ in starts[1:]), _FOREVER]
    return [Use(timeline, start, end) for (start, timeline), end in zip(starts, ends, strict=False)]


def read_forks(text: bytes) -> dict[int, int]:
    """Read the ancestors of a timeline, and the segment in which each was left, from its history."""
    lines = [line.split() for line in text.decode().splitlines() if line.strip() and not line.startswith("#")]
    return {int(timeline): number_of(position) for timeline, position, *_ in lines}

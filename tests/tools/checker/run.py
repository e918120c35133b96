"""A run: clients of all kinds on a few entities of a table, faults, and the check of the histories."""

import gc
import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import uuid4

from tests.tools.checker.clients import EVERYTHING, Load
from tests.tools.checker.feed import (
    Api,
    FeedReader,
    check_feed,
    check_feed_of,
    check_past,
    check_restored,
    check_versions,
)
from tests.tools.checker.history import WEAKER, History, Write
from tests.tools.checker.levels import Violation
from tests.tools.checker.registers import check_registers
from tests.tools.checker.rehearsal import Record, check_records
from tests.tools.checker.replicas import check_replicas
from tests.tools.checker.site import SECOND, Fault, Site, happens


class Recovery(NamedTuple):
    """Seconds from a fault to the next acknowledged write, by a client of any address, and of the slowest address.

    A write counts if it began after the fault.
    """

    fault: str
    any_address: float
    every_address: float


@dataclass
class Figures:
    faults: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    pauses: list[float] = field(default_factory=list)  # seconds without an acknowledged write, of each table
    violations: list[Violation] = field(default_factory=list)
    recoveries: list[Recovery] = field(default_factory=list)

    def merge(self, other: "Figures") -> None:
        self.faults.update(other.faults)
        self.operations.update(other.operations)
        self.pauses += other.pauses
        self.violations += other.violations
        self.recoveries += other.recoveries

    def add(self, history: History, changes: int) -> None:
        acknowledged = [it.ended for it in history.writes if it.ended is not None]
        pauses = [later - earlier for earlier, later in pairwise(sorted(acknowledged))]
        self.pauses.append(max(pauses, default=0.0))
        self.operations.update(
            {
                "acknowledged writes": len(acknowledged),
                "writes with an unknown outcome": len(history.writes) - len(acknowledged),
                "refused writes": len(history.without_effect),
                "reads": len(history.reads),
                "of them at weaker levels": len(history.of_level(*WEAKER)),
                "reads of the past": len(history.past),
                "changes in the feed": changes,
            }
        )

    def add_recoveries(self, history: History, struck: Iterable[tuple[str, float]], addresses: int) -> None:
        """Add the recoveries of faults, whose addresses have all acknowledged a write since."""
        acknowledged: list[list[Write]] = [[] for _ in range(addresses)]
        for write in history.writes:
            if write.ended is not None:
                acknowledged[int(write.session.rpartition(" ")[2]) % addresses].append(write)
        for fault, moment in struck:
            ends = [min((it.ended for it in own if it.began > moment), default=inf) for own in acknowledged]
            if max(ends) < inf:
                self.recoveries.append(Recovery(fault, min(ends) - moment, max(ends) - moment))

    def add_records(self, records: Sequence[Record]) -> None:
        struck = [it for it in records if it.is_struck]
        self.operations["rehearsed failures of writes"] += len(struck)
        self.operations["of them committed"] += sum(it.is_applied for it in struck)


@dataclass(frozen=True)
class Plan:
    """The parameters of a run.

    Without durability, a crash may lose the last acknowledged writes, though never half of a write, and never changes
    that the feed has delivered.
    """

    clients: int = 32
    answers: int = 40  # writes, and reads, before a fault and after the last one
    seed: int = 0
    is_durable: bool = True
    rehearsal: str = ""  # the set of rules whose failures clients meet
    record: Path | None = None  # the file for the history if a law is broken


def run(site: Site, token: str, plan: Plan, faults: Sequence[Fault]) -> Figures:
    """Apply faults to a site while clients work on a new table, and check what they did and saw."""
    dice = Random(plan.seed)
    endpoints = site.endpoints()
    load = Load(endpoints[0], f"t{uuid4().hex}", plan.seed)
    load.add_clients(plan.clients, endpoints)
    figures = Figures()
    api = Api(endpoints[0], load.table, token)
    site.table = load.table
    if site.replica is not None:
        for level in WEAKER[:-1]:
            load.add_readers(level, endpoint=endpoints[SECOND])
        load.add_readers_of_the_secondary(endpoints[SECOND])
    struck: list[tuple[str, float]] = []
    gc.collect()
    with load.running(), FeedReader(api) as reader:
        if plan.rehearsal:
            site.rehearse(load.table, plan.rehearsal, plan.seed)
        for fault in faults:
            # more writes than may be on their way from a server that was killed
            load.wait_for_answers(int(plan.answers * (0.5 + dice.random())), writes=plan.clients)
            while not happens(fault, site, dice):
                load.wait_for_answers(1, writes=plan.clients)
            figures.faults[fault.__name__] += 1
            struck.append((fault.__name__, site.struck_at))
        load.wait_for_answers(plan.answers)
        load.stop()
        records = site.end_rehearsal() if plan.rehearsal else None
        with load.client("last", kind=EVERYTHING) as client:
            final = {key: load.recorder.get(client, key).seen[key] for key in load.keys}
            for read in load.history.past[::10]:
                load.recorder.past(client, list(read.seen), read.moment or 0)
        reader.catch_up()
    changes = reader.changes
    versions = {key: api.versions(key) for key in load.keys}
    figures.add(load.history, len(changes))
    figures.add_recoveries(load.history, struck, len(endpoints))
    figures.operations["kills after the end of their operation"] += site.late_kills
    figures.violations += check_feed(changes, final)
    figures.violations += check_versions(versions, changes)
    if records is not None:
        figures.add_records(records)
        figures.violations += check_records(records, changes)
    if plan.is_durable:
        figures.violations += check_registers(load.history, changes)
        figures.violations += check_feed_of(load.history, changes)
        figures.violations += check_past(load.history, changes)
        figures.violations += check_replicas(load.history, changes)
        for restored in site.restored:
            figures.violations += check_restored(load.history, changes, restored)
    figures.violations += site.violations
    site.late_kills, site.violations, site.restored = 0, [], []
    figures.violations += [Violation("a log without exceptions", it) for it in site.logged_errors()]
    if figures.violations and plan.record is not None:
        plan.record.write_bytes(pickle.dumps((load.history, changes, final, figures.violations)))
    return figures

"""Resources of a server: CPU time of a process and all its descendants, read from /proc."""

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """Return the process and its running descendants."""
    results = [root]
    for pid in results:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            results += [int(child) for child in read(children).split()]
    return results


def cpu_seconds(root: int) -> float:
    """Time used by the processes that are alive; children that ended count through their parents."""
    total = 0
    for pid in tree(root):
        fields = read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
        total += sum(map(int, fields[11:15]))
    return total / TICKS


def memory(root: int) -> int:
    """Bytes of memory that the processes have, what they share counted once."""
    total = 0
    for pid in tree(root):
        rollup = dict(line.split()[:2] for line in read(Path(f"/proc/{pid}/smaps_rollup")).splitlines()[1:])
        total += int(rollup.get("Pss:", 0)) * 1024
    return total


def busy_seconds() -> float:
    """CPU time that all processes of the machine have used since it started, and that the hypervisor has stolen."""
    user, nice, system, _, _, irq, softirq, steal = map(int, read(Path("/proc/stat")).split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def stolen_seconds() -> float:
    return int(read(Path("/proc/stat")).split()[8]) / TICKS


@dataclass(frozen=True, slots=True)
class Use:
    """CPU time of the machine's other programs, and of the load generator, which is this process, up to a moment."""

    at: float
    others: float
    stolen: float
    client: float

    @classmethod
    def now(cls) -> "Use":
        others = busy_seconds() - cpu_seconds(os.getpid())
        return cls(time.monotonic(), others, stolen_seconds(), time.process_time())

    def others_since(self, before: "Use") -> float:
        """Cores that other programs kept busy, and the hypervisor took away."""
        return max(0.0, self.others - before.others) / (self.at - before.at)

    def stolen_since(self, before: "Use") -> float:
        return (self.stolen - before.stolen) / (self.at - before.at)

    def client_since(self, before: "Use") -> float:
        return (self.client - before.client) / (self.at - before.at)


def signal_tree(root: int, number: signal.Signals) -> None:
    for pid in tree(root):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

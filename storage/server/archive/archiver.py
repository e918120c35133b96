"""Process that copies PostgreSQL's WAL into the archive, segment by segment."""

import contextlib
import json
import os
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from storage.server.archive.archive_store import SEGMENT, Archive, NotAnArchive
from storage.server.refusal import Refusal

INTERVAL = 0.2  # seconds between two looks
PAUSE = 5.0  # seconds after a failure
HANGS = 60.0  # seconds after which an archive that does not answer has failed
LOW = 1 << 30  # bytes that must be free on the disk of the database, or a fifth of a small one


class Failure(Exception):
    """A segment cannot be archived; the text is a sentence."""


class Owner(NamedTuple):
    """The database that uses an archive, and whether it has sealed it."""

    system: str
    is_sealed: bool = False


class Archiver:
    def __init__(self, wal: Path, archive: Archive, owner: Owner, folder: Path, backlog: int) -> None:
        self.wal = wal
        self.ready = wal / "archive_status"
        self.archive = archive
        self.owner = owner
        self.state_file = folder / "state.json"
        self.failing = folder / "failing"
        self.done = folder / "done"
        self.backlog = backlog
        self.state = read_state(self.state_file)
        self.push: Push | None = None
        self.wait_until = 0.0
        # PostgreSQL does not offer again what was dropped, or what was restored into its folder
        self.histories = self.find_histories()

    def run(self) -> None:
        while not select.select([0], [], [], INTERVAL)[0]:
            with contextlib.suppress(OSError):  # an error of the disk of the database, which others report
                self.step()

    def step(self) -> None:
        waiting = self.waiting()
        for mark in self.done.iterdir():
            if not (self.ready / f"{mark.name}.ready").exists():
                mark.unlink()
        if self.push is not None:
            self.finish_push(self.push)
        if self.push is None and time.monotonic() >= self.wait_until:
            names = [*self.histories, *waiting[:1]]
            if names:
                self.push = Push(self, names[0])
            elif (
                self.state["failure"] is not None
            ):  # waiting segments were dropped: is the archive there again?
                self.push = Push(self)
            else:
                self.succeed()
        self.bound(waiting)

    def waiting(self) -> list[str]:
        """Return the files that await archiving, in PostgreSQL's order: timeline histories, then oldest first."""
        names = [it.name.removesuffix(".ready") for it in self.ready.glob("*.ready")]
        names = [it for it in names if not (self.done / it).exists()]
        return sorted(names, key=lambda it: (not it.endswith(".history"), it))

    def find_histories(self) -> list[str]:
        return sorted(it.name for it in self.wal.glob("*.history"))

    def finish_push(self, push: "Push") -> None:
        if push.thread.is_alive():
            if time.monotonic() - push.began > HANGS:
                self.fail("The archive does not answer.")
            return
        self.push = None
        if push.problem:
            self.wait_until = time.monotonic() + PAUSE
            self.fail(push.problem)
            return
        if push.name:
            self.histories = [it for it in self.histories if it != push.name]
            if (self.ready / f"{push.name}.ready").exists():
                (self.done / push.name).touch()
            self.state["archived"], self.state["archived_at"] = push.name, now()
        self.state["failure"] = None
        self.succeed()
        write_state(self.state_file, self.state)

    def succeed(self) -> None:
        self.failing.unlink(missing_ok=True)
        gap = self.state["gap"]
        if gap is not None and gap["until"] is None and self.state["failure"] is None:
            gap["until"] = now()
            self.histories = self.find_histories()
            write_state(self.state_file, self.state)

    def fail(self, reason: str) -> None:
        since = (self.state["failure"] or {}).get("since") or now()
        self.state["failure"] = {"since": since, "at": now(), "reason": reason}
        write_state(self.state_file, self.state)
        self.failing.touch()

    def bound(self, waiting: list[str]) -> None:
        """Drop waiting segments before they fill the disk of the database, which would stop the server."""
        if self.state["failure"] is None or not waiting:
            return
        gap = self.state["gap"]
        is_open = gap is not None and gap["until"] is None
        disk = shutil.disk_usage(self.wal)
        is_low = disk.free < min(LOW, disk.total // 5)
        if not (is_open or len(waiting) * SEGMENT > self.backlog or is_low):
            return
        if not is_open:
            reason = "the disk of the database is nearly full" if is_low else "more waited than the limit"
            gap = {"from": waiting[0], "at": now(), "until": None, "reason": reason}
        self.state["gap"] = {**gap, "to": waiting[-1]}
        write_state(self.state_file, self.state)  # first: nothing is dropped without a record
        for name in waiting:
            (self.done / name).touch()
        self.failing.unlink(missing_ok=True)  # so that archive_command looks


class Push:
    """Thread that archives one file, or checks the archive without one, as a network archive may hang for hours."""

    def __init__(self, archiver: Archiver, name: str = "") -> None:
        self.name = name
        self.problem = ""
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self.run, args=(archiver,), daemon=True)
        self.thread.start()

    def run(self, archiver: Archiver) -> None:
        try:
            if self.name:
                push(archiver.wal / self.name, archiver.archive, archiver.owner)
            else:
                check(archiver.archive, archiver.owner)
        except (Failure, Refusal) as failure:
            self.problem = str(failure)
        except OSError as error:
            self.problem = f"{error.filename or archiver.archive.location}: {error.strerror}."


def push(source: Path, archive: Archive, owner: Owner) -> None:
    """Copy a file into the archive, durably and as a whole."""
    check(archive, owner)
    if not archive.write_log(source.name, source.read_bytes(), source.stat().st_mtime_ns):
        raise Failure(
            f"{archive.location} has other content for {source.name} than the segment of this database, so that another"
            " server seems to use the archive. Start one of them with another archive."
        )


def check(archive: Archive, owner: Owner) -> None:
    """Raise Failure unless the archive exists and belongs to this database, as its disk may not be mounted."""
    try:
        system = archive.open().system
    except NotAnArchive as error:
        raise Failure(f"{error} Is its disk mounted? A new archive needs another folder.") from None
    if system != owner.system:
        raise Failure(f"{archive.location} is the archive of another database.")
    if owner.is_sealed and not archive.is_sealed:
        raise Failure(f"{archive.location} was sealed and is no more: somebody has changed its description.")


def read_state(path: Path) -> dict[str, Any]:
    state: dict[str, Any] = {"archived": "", "archived_at": None, "failure": None, "gap": None}
    with contextlib.suppress(OSError, ValueError):
        state |= json.loads(path.read_text())
    return state


def write_state(path: Path, state: dict[str, Any]) -> None:
    draft = path.with_suffix(".new")
    with draft.open("w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def now() -> str:
    return datetime.now(UTC).isoformat()


def main(plan: dict[str, Any], run: Callable[[Archiver], None] = Archiver.run) -> None:
    archive = Archive(plan["archive"], Path(plan["passphrase_file"]) if plan["passphrase_file"] else None)
    owner = Owner(plan["system"], plan["is_sealed"])
    run(Archiver(Path(plan["wal"]), archive, owner, Path(plan["folder"]), plan["backlog"]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
    os._exit(0)  # not waiting for a thread that hangs

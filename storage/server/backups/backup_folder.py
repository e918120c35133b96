"""The folder of backups: each is a folder with a description, which appears when it is complete and verified."""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from storage.operations.health.last_backup import Kind
from storage.server.backups.contents import Relation
from storage.server.refusal import Refusal

DESCRIPTION: Final = "backup.json"
MANIFEST: Final = "backup_manifest"
FORMAT: Final = 1
_NAME: Final = "%Y-%m-%dT%H-%M-%SZ"
_PATIENCE: Final = 30.0  # seconds for the program of a backup that was killed


class SecretIn(StrEnum):
    """How a backup contains the server secret."""

    PLAIN = "secret"
    SEALED = "secret.sealed"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Backup:
    path: Path
    kind: Kind
    version: str
    postgresql: str
    started_at: datetime
    finished_at: datetime
    size: int  # bytes
    wal: str  # the position up to which it has the log
    parent: str  # the backup that an incremental one continues
    secret: SecretIn
    relations: dict[str, Relation]
    files: dict[str, str]  # SHA-256 of those that no manifest has

    @property
    def database(self) -> Path:
        return self.path / "database"

    @property
    def dump(self) -> Path:
        return self.path / "database.dump"

    def write(self) -> None:
        relations = {name: it.in_json() for name, it in self.relations.items()}
        content = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "path"}
        content |= {
            "format": FORMAT,
            "relations": relations,
            "started_at": self.started_at.isoformat(),
            "finished_at": self.finished_at.isoformat(),
        }
        content["sha256"] = _digest_of(content)
        write_private(self.path / DESCRIPTION, json.dumps(content, indent=1).encode())

    @classmethod
    def read(cls, path: Path) -> "Backup":
        """Raise Refusal unless there is a backup that this version understands."""
        try:
            content = json.loads((path / DESCRIPTION).read_bytes())
            digest = content.pop("sha256")
        except FileNotFoundError:
            raise Refusal(f"{path} is not a backup: it has no {DESCRIPTION}.") from None
        except OSError as error:
            raise Refusal(f"The backup {path} cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, AttributeError):
            raise _damaged(path, DESCRIPTION) from None
        if digest != _digest_of(content):
            raise _damaged(path, DESCRIPTION)
        if (made_in := content.pop("format")) != FORMAT:
            raise Refusal(
                f"The backup {path} has the format {made_in}; use the version of Tablero that made it."
            )
        return cls(
            path=path,
            kind=Kind(content.pop("kind")),
            secret=SecretIn(content.pop("secret")),
            started_at=datetime.fromisoformat(content.pop("started_at")),
            finished_at=datetime.fromisoformat(content.pop("finished_at")),
            relations={name: Relation.from_json(it) for name, it in content.pop("relations").items()},
            **content,
        )


def verify(backup: Backup) -> None:
    """Raise Refusal unless every file is there and has the content that it had when it was backed up."""
    expected = dict(backup.files)
    if backup.kind is not Kind.DUMP:
        expected |= {f"database/{name}": digest for name, digest in read_manifest(backup.database).items()}
    for path in backup.path.rglob("*"):
        if path.is_symlink():  # would lead the restore, which root may run, to other files
            raise _damaged(backup.path, path.name, "which is a link")
    found = files_in(backup.path)
    found.discard(DESCRIPTION)
    if extra := found - expected.keys():
        raise _damaged(backup.path, min(extra), "which does not belong to it")
    for name, digest in expected.items():
        if name not in found:
            raise _damaged(backup.path, name, "which is missing")
        if digest_of(backup.path / name) != digest:
            raise _damaged(backup.path, name)


def read_manifest(database: Path) -> dict[str, str]:
    """Return the checksums that PostgreSQL made while it sent the files, by their names."""
    path = database / MANIFEST
    text = path.read_bytes()
    # the last line of the manifest is its own checksum, over everything before that line
    try:
        content: dict[str, Any] = json.loads(text)
        before = text[: text.rindex(b'"Manifest-Checksum"')]
        if hashlib.sha256(before).hexdigest() != content["Manifest-Checksum"]:
            raise ValueError(path)
        return {_name(it): it["Checksum"] for it in content["Files"]}
    except (ValueError, KeyError):
        raise _damaged(database.parent, f"database/{MANIFEST}") from None


def wal_end(database: Path) -> str:
    """Return the position in the log up to which a base backup needs it."""
    ranges = json.loads((database / MANIFEST).read_bytes())["WAL-Ranges"]
    return str(ranges[-1]["End-LSN"])


def digests_without_manifest(path: Path) -> dict[str, str]:
    """Return the checksums of the files of a new backup that no manifest has."""
    listed = read_manifest(path / "database") if (path / "database").exists() else {}
    names = files_in(path) - {f"database/{name}" for name in listed}
    return {name: digest_of(path / name) for name in sorted(names)}


def files_in(path: Path) -> set[str]:
    return {it.relative_to(path).as_posix() for it in path.rglob("*") if not it.is_dir()}


def digest_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}.") from None


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, to disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


@dataclass(frozen=True, slots=True)
class BackupFolder:
    path: Path

    def backups(self) -> list[Backup]:
        """Return the backups whose descriptions can be read, the oldest first."""
        found = []
        for path in sorted(self.path.glob(f"[!.]*/{DESCRIPTION}")):
            with suppress(Refusal):
                found.append(Backup.read(path.parent))
        return sorted(found, key=lambda it: it.started_at)

    def last(self) -> Backup:
        found = self.backups()
        if not found:
            raise Refusal(f"There is no backup in {self.path}.")
        return found[-1]

    @contextmanager
    def held(self) -> Iterator[int]:
        """Make the folder if need be and keep other backups out of it; yields the descriptor of the lock."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Refusal(
                f"It is not possible to write to {self.path} ({error.strerror}); choose another folder."
            ) from None
        try:
            self._lock(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            for abandoned in self.path.glob(".*.part"):
                shutil.rmtree(abandoned, ignore_errors=True)
            yield descriptor
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                pid = os.pread(descriptor, 20, 0).decode()
                # the program of a backup that was killed ends in a moment
                if _is_alive(pid) or time.monotonic() > deadline:
                    raise Refusal(
                        f"Another backup into {self.path} is running (process {pid}); wait for its end."
                    ) from None
                time.sleep(0.05)

    @contextmanager
    def draft(self, started_at: datetime) -> Iterator[tuple[Path, Path]]:
        """Yield a new private folder and the path to rename it to; it is removed unless the caller does that."""
        final = self.path / started_at.strftime(_NAME)
        while final.exists():
            time.sleep(0.05)
            final = self.path / datetime.now(UTC).strftime(_NAME)
        draft = self.path / f".{final.name}.part"
        draft.mkdir(mode=0o700)
        try:
            yield draft, final
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def delete_older(self, keep: int) -> list[str]:
        """Delete all but the newest backups and those that they continue; return the names of the deleted."""
        found = {it.path.name: it for it in self.backups()}
        kept = set(list(found)[-keep:])
        for name in list(kept):
            while (parent := found[name].parent) in found:
                kept.add(name := parent)
        deleted = [name for name in found if name not in kept]
        for name in deleted:
            gone = self.path / f".{name}.part"
            (self.path / name).rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        return deleted


def synchronize(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, ValueError):
        return False
    return True


def _name(listed: dict[str, str]) -> str:
    encoded = listed.get("Encoded-Path")
    return listed["Path"] if encoded is None else os.fsdecode(bytes.fromhex(encoded))


def _digest_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path, name: str, what: str = "which has changed since") -> Refusal:
    return Refusal(f"The backup {path} is damaged: {name}, {what}. Use another backup.")

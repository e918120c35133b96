"""Stores of backups and of an archive: a folder, or a bucket of an object store."""

import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from storage.server.refusal import Refusal

DESCRIPTION: Final = "backup.json"
SEALED_SUFFIX: Final = ".sealed"
_NAME: Final = "%Y-%m-%dT%H-%M-%SZ"
_IS_NAME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PATIENCE: Final = 30.0  # seconds for the program of a backup that was killed


class Reader(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class Writer(Protocol):
    def write(self, data: bytes, /) -> object: ...


class Draft(Protocol):
    """Backup in progress."""

    @property
    def name(self) -> str: ...

    @property
    def written(self) -> Mapping[str, int]:
        """Return the bytes of each completed file."""
        ...

    def create(self, file: str, expected: int = 0) -> AbstractContextManager[Writer]:
        """Yield a writer to a file of about ``expected`` bytes; nothing is stored if the block raises."""
        ...

    def publish(self, description: bytes) -> None:
        """Store the description, which publishes the backup; raises Refusal if a file is not as written."""
        ...


class Store(Protocol):
    @property
    def location(self) -> str:
        """Return the path or URL, without credentials."""
        ...

    def names(self) -> list[str]:
        """Return names of possible backups; only those with a description are complete."""
        ...

    def locate(self, name: str) -> str: ...

    def folder_of(self, name: str) -> Path | None:
        """Return the folder of a backup; None for backups in a bucket."""
        ...

    def files(self, name: str) -> dict[str, int]:
        """Return the files of a backup with their sizes in bytes."""
        ...

    def held(self) -> AbstractContextManager[int | None]:
        """Lock the store and remove abandoned backups; yields a descriptor for child programs."""
        ...

    def draft(self, started_at: datetime) -> AbstractContextManager[Draft]:
        """Yield a draft of a backup, which is removed unless the block publishes it."""
        ...

    def free(self) -> int | None:
        """Return the free bytes; None without a limit."""
        ...

    def sub(self, name: str) -> "Store":
        """Return the store in a subfolder."""
        ...

    def entries(self) -> set[str]:
        """Return the names of files and subfolders."""
        ...

    def open(self, name: str, file: str) -> AbstractContextManager[Reader]:
        """Yield a reader of a file in a subfolder, or with an empty name beside the subfolders.

        Raises FileNotFoundError.
        """
        ...

    def start(self, name: str, file: str, size: int) -> bytes:
        """Return the first bytes of a file."""
        ...

    def put(self, name: str, file: str, content: bytes) -> None:
        """Store a file durably and as a whole; raises FileExistsError if there is one."""
        ...

    def remove(self, name: str, file: str) -> None: ...

    def delete(self, name: str) -> None:
        """Delete a backup, its description first."""
        ...


def is_url(location: str) -> bool:
    return _URL.match(location) is not None


def open_store(location: str) -> Store:
    """Return the store at a path, or at a URL `s3://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`."""
    if is_url(location):
        from storage.server.backups import buckets  # its library is an extra, and takes a while to load

        return buckets.open_bucket(location)
    return FolderStore(Path(location).expanduser().absolute())


def split_backup(location: str) -> tuple[Store, str] | None:
    """Split a location into the store and the name of a backup; None if it can only be a store."""
    if not is_url(location):
        path = Path(location).expanduser().absolute()
        return (FolderStore(path.parent), path.name) if (path / DESCRIPTION).exists() else None
    parent, _, name = location.rstrip("/").rpartition("/")
    return (open_store(parent), name) if is_name(name) else None


def is_name(text: str) -> bool:
    return _IS_NAME.fullmatch(text) is not None


def name_of(started_at: datetime) -> str:
    return started_at.strftime(_NAME)


class FolderStore:
    """Folder with a subfolder per backup; hidden ones are incomplete."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def location(self) -> str:
        return str(self.path)

    def names(self) -> list[str]:
        return [path.parent.name for path in self.path.glob(f"[!.]*/{DESCRIPTION}")]

    def locate(self, name: str) -> str:
        return str(self.path / name)

    def folder_of(self, name: str) -> Path:
        return self.path / name

    def files(self, name: str) -> dict[str, int]:
        """Return the files; raises Refusal for a symbolic link, which could redirect a restore by root."""
        sizes = {}
        top = self.path / name
        for folder, folders, files in os.walk(top):
            for entry in (*folders, *files):
                status = os.lstat(path := f"{folder}/{entry}")
                if stat.S_ISLNK(status.st_mode):
                    raise Refusal(
                        f"The backup {top} is damaged: {entry}, which is a link. Use another backup."
                    )
                if not stat.S_ISDIR(status.st_mode):
                    sizes[os.path.relpath(path, top)] = status.st_size
        return sizes

    @contextmanager
    def open(self, name: str, file: str) -> Iterator[BinaryIO]:
        with (self.path / name / file).open("rb") as found:
            yield found

    @contextmanager
    def held(self) -> Iterator[int]:
        """Create and lock the folder; yields the descriptor of the lock. Raises Refusal."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # no link: others may be able to write to the folder, and root makes the backups
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.path / ".lock", flags, 0o600)
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
                if is_alive(pid) or time.monotonic() > deadline:
                    raise Refusal(
                        f"Another backup into {self.path} is running (process {pid}); wait for its end."
                    ) from None
                time.sleep(0.05)

    @contextmanager
    def draft(self, started_at: datetime) -> Iterator["FolderDraft"]:
        final = self.path / name_of(started_at)
        while final.exists():
            time.sleep(0.05)
            final = self.path / name_of(datetime.now(UTC))
        with self.draft_of(final.name) as draft:
            yield draft

    @contextmanager
    def draft_of(self, name: str) -> Iterator["FolderDraft"]:
        """Yield a draft of a backup with a given name."""
        draft = FolderDraft(self.path / f".{name}.part", self.path / name)
        draft.path.mkdir(mode=0o700)
        try:
            yield draft
        finally:
            shutil.rmtree(draft.path, ignore_errors=True)

    def free(self) -> int:
        space = os.statvfs(self.path)
        return space.f_bavail * space.f_frsize

    def sub(self, name: str) -> "FolderStore":
        return FolderStore(self.path / name)

    def entries(self) -> set[str]:
        return {it.name for it in self.path.iterdir()} if self.path.exists() else set()

    def start(self, name: str, file: str, size: int) -> bytes:
        with self.open(name, file) as reader:
            return reader.read(size)

    def put(self, name: str, file: str, content: bytes) -> None:
        folder = self.path / name
        folder.mkdir(mode=0o700, exist_ok=True)
        target = folder / file
        # no link: others may be able to write to the folder
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the process of a killed server may still write the same file
            if is_new := not target.exists():
                draft = folder / f".{file}.part"
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
                with os.fdopen(descriptor, "wb") as sink:
                    sink.write(content)
                synchronize(draft)
                draft.rename(target)
            synchronize(target)
            synchronize(folder)
        finally:
            os.close(lock)
        if not is_new:
            raise FileExistsError(target)

    def remove(self, name: str, file: str) -> None:
        (self.path / name / file).unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        gone = self.path / f".{name}.part"
        (self.path / name).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


class FolderDraft:
    def __init__(self, path: Path, final: Path) -> None:
        self.path = path
        self.written: dict[str, int] = {}
        self._final = final

    @property
    def name(self) -> str:
        return self._final.name

    @contextmanager
    def create(self, file: str, expected: int = 0) -> Iterator[BinaryIO]:
        path = self.path / file
        if not path.parent.exists():
            self.make_folder(path.parent.relative_to(self.path).as_posix())
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as sink:
                yield sink
        except BaseException:
            path.unlink()
            raise
        self.written[file] = path.stat().st_size

    def make_folder(self, name: str) -> None:
        for path in reversed([self.path / name, *(self.path / name).parents]):
            if path.is_relative_to(self.path):
                path.mkdir(mode=0o700, exist_ok=True)

    def publish(self, description: bytes) -> None:
        with self.create(DESCRIPTION) as sink:
            sink.write(description)
        os.sync()  # thousands of files, one by one, would take longer
        self.path.rename(self._final)
        synchronize(self._final.parent)


def synchronize(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, ValueError):
        return False
    return True

"""Files of jobs, uploads and downloads, stored in pieces in the database."""

import io
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, BinaryIO, Final, cast

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from storage.domain.access.actor import Actor
from storage.domain.refusals import Reason, Refused
from storage.jobs.kinds import Run
from storage.jobs.states import FILE_RETENTION
from storage.models import Account, Job, JobFile, JobFilePiece


class FileExpired(Refused):
    """A required file has expired."""


PIECE: Final = 1 << 20  # bytes at most


def create(
    name: str, *, account: Account | None, by: Actor, job: Job | None = None, content_type: str = ""
) -> JobFile:
    """Create an empty file, which expires unless it is attached to a job."""
    return JobFile.objects.create(
        name=name,
        account=account,
        job=job,
        owner=owner_of(by),
        content_type=content_type,
        is_result=job is not None,
        expires_at=timezone.now() + FILE_RETENTION,
    )


def owner_of(by: Actor) -> str:
    """Return the owner value by which a user's files are looked up."""
    return by.name[:256]


def uploaded_names(job: Job) -> list[str]:
    """Return the names of the files that a job reads, without deleted ones."""
    return [file.name for file in job.files.all() if not file.is_result]


def disown(user: str) -> None:
    """Clear the owner of a deleted user's files, as another user may get the name."""
    JobFile.objects.filter(owner=user).update(owner="")


@transaction.atomic
def append(file: JobFile, content: bytes) -> None:
    """Append bytes to a file, in the caller's transaction if there is one."""
    for start in range(0, len(content), PIECE):
        piece = content[start : start + PIECE]
        JobFilePiece.objects.create(file=file, start=file.size + start, content=piece)
    JobFile.objects.filter(pk=file.pk).update(size=F("size") + len(content))
    file.size += len(content)


def discard(file: JobFile) -> None:
    """Delete a file that is not attached to a job, such as an interrupted upload."""
    JobFile.objects.filter(pk=file.pk, job=None).delete()


def discard_results(job: Job) -> None:
    """Delete the result files of a job that starts again."""
    JobFile.objects.filter(job=job, is_result=True).delete()


@transaction.atomic
def append_at(file: JobFile, start: int, content: bytes) -> int:
    """Write bytes at ``start``, skipping those already stored; return the file's size."""
    locked = JobFile.objects.select_for_update().get(pk=file.pk)
    if start <= locked.size < start + len(content):
        append(locked, content[locked.size - start :])
    file.size = locked.size
    return locked.size


def complete(file: JobFile) -> None:
    """Mark a file as complete and readable."""
    JobFile.objects.filter(pk=file.pk).update(is_complete=True)
    file.is_complete = True


def upload(file: JobFile, pieces: Iterable[bytes]) -> None:
    """Write a stream to a file and mark it as complete."""
    with writing(file) as stream:
        for piece in pieces:
            stream.write(piece)
    complete(file)


@contextmanager
def writing(file: JobFile) -> Iterator[BinaryIO]:
    """Yield a stream that writes to a file, with a transaction per piece."""
    writer = _FileWriter(file)
    try:
        yield cast("BinaryIO", writer)
        writer.write_rest()
    finally:
        writer.is_over = True


class _FileWriter(io.RawIOBase):
    def __init__(self, file: JobFile) -> None:
        self.is_over = False
        self._file = file
        self._waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        if not self.is_over:
            self._waiting += content
        while len(self._waiting) >= PIECE:
            append(self._file, bytes(self._waiting[:PIECE]))
            del self._waiting[:PIECE]
        return len(content)

    def write_rest(self) -> None:
        append(self._file, bytes(self._waiting))


def find(pk: int) -> JobFile | None:
    """Return a complete file that has not expired."""
    return _usable().filter(pk=pk).select_related("job", "account").first()


def _usable() -> QuerySet[JobFile]:
    return JobFile.objects.filter(is_complete=True, expires_at__gt=timezone.now())


def of_job(job: Job) -> list[JobFile]:
    return list(JobFile.objects.filter(job=job).order_by("pk"))


def to_download(job: Job) -> list[JobFile]:
    """Return the result files of a job that have not expired; its input files are left out."""
    return list(_usable().filter(job=job, is_result=True).order_by("pk"))


def of_run(run: Run[Any], name: str, content_type: str = "") -> JobFile:
    """Return the file that a job writes under a name, creating it on first use."""
    found = JobFile.objects.filter(job=run.job, name=name).first()
    return found or create(name, account=run.job.account, by=run.by, job=run.job, content_type=content_type)


def read(file: JobFile, start: int = 0, end: int | None = None) -> Generator[bytes, None, None]:
    """Yield the bytes from ``start`` (inclusive) to ``end`` (exclusive), in pieces."""
    end = file.size if end is None else min(end, file.size)
    while start < end:
        piece = JobFilePiece.objects.filter(file=file, start__lte=start).order_by("-start").first()
        if piece is None:
            raise FileExpired(Reason.JOB_FILE_EXPIRED, file=file.name)
        content = bytes(piece.content)[start - piece.start : end - piece.start]
        if not content:
            return
        yield content
        start += len(content)


class FileReader(io.RawIOBase):
    """Seekable stream over a stored file; wrap it in io.BufferedReader(..., PIECE)."""

    def __init__(self, file: JobFile) -> None:
        self._file = file
        self._position = 0
        self._piece, self._piece_start = b"", 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        offset = self._position - self._piece_start
        if not 0 <= offset < len(self._piece):
            self._piece = next(read(self._file, self._position), b"")
            self._piece_start, offset = self._position, 0
        chunk = self._piece[offset : offset + len(view)]
        view[: len(chunk)] = chunk
        self._position += len(chunk)
        return len(chunk)


def open_file(file: JobFile, reader: type[FileReader] = FileReader) -> io.BufferedReader:
    return io.BufferedReader(reader(file), PIECE)


def keep_after(job: Job) -> None:
    """Let the files of an ended job expire after a day, so that it can be resumed or downloaded until then."""
    JobFile.objects.filter(job=job).update(expires_at=timezone.now() + FILE_RETENTION)


def tidy(now: datetime) -> None:
    """Delete expired files, except those of unfinished jobs."""
    expired = JobFile.objects.filter(expires_at__lt=now).exclude(job__isnull=False, job__ended_at=None)
    expired.delete()

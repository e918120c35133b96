"""Export an account by a job, into a file to download. An interrupted export begins again with an empty file."""

import io
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, cast

from django.db import connection

from storage.domain.access.roles import Capability
from storage.models import Account, JobFile
from storage.operations.counting import totals
from storage.operations.jobs import files
from storage.operations.jobs.files import PIECE
from storage.operations.jobs.kinds import JobKind, JobRequest, NoState, Run, Step
from storage.operations.snapshots import account_export


@dataclass(frozen=True, slots=True)
class Arguments:
    name: str


class _ExportJob(JobKind[Arguments, NoState]):
    """The file has policies and settings, so that readers of the account may not download it."""

    name, arguments, state = "account.export", Arguments, NoState
    capability = reads_files = Capability.MANAGE_ACCESS
    is_transactional = False

    def begin(self, run: Run[Arguments]) -> Step[NoState]:
        found = totals.contents([run.account.pk]).get(run.account.pk)
        return Step(NoState(), total=None if found is None else found.entities)

    def step(self, run: Run[Arguments], state: NoState) -> Step[NoState]:
        for left in files.of_job(run.job):
            left.delete()  # of a process that has died
        run.save(Step(state, starts_over=True))
        file = files.of_run(run, f"{run.account.name}.ndjson.gz", "application/gzip")
        stream = _FileWriter(file)
        saved = 0

        def save(number: int) -> None:
            nonlocal saved
            if not connection.in_atomic_block:  # else all is read in one transaction
                run.save(Step(state, done=number - saved))
                saved = number
                run.rest()

        try:
            done = account_export.export(run.account, cast("BinaryIO", stream), progress=save)
            stream.finish()
        finally:
            stream.is_over = True
        return Step(
            state,
            done=done.entities - saved,
            total=done.entities,
            counts={"exported": done.entities},
            result={"tables": done.tables, "entities": done.entities},
            is_finished=True,
        )


EXPORT_JOB: Final = _ExportJob()


def request(account: Account) -> JobRequest[Arguments, NoState]:
    return JobRequest(EXPORT_JOB, Arguments(account.name), account)


class _FileWriter(io.RawIOBase):
    """A file of a job as the writer of exports needs it: what is written is stored piece by piece.

    Once it ``is_over``, what is written is lost, such as the rest of a compressor that was left in the middle.
    """

    def __init__(self, file: JobFile) -> None:
        self.is_over = False
        self._file = file
        self._waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        self._waiting += b"" if self.is_over else content
        while len(self._waiting) >= PIECE:
            files.append(self._file, bytes(self._waiting[:PIECE]))
            del self._waiting[:PIECE]
        return len(content)

    def finish(self) -> None:
        files.append(self._file, bytes(self._waiting))
        files.complete(self._file)

"""Jobs that produce a file for download; an interrupted export starts the file again."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import BinaryIO, NamedTuple, TypeVar

from django.db import connection

from storage.jobs import files
from storage.jobs.kinds import (
    JobKind,
    NoState,
    Run,
    Step,
)
from storage.jobs.states import JobStatus

A = TypeVar("A")  # the arguments
Progress = Callable[[int], None]  # is called with the number of entities so far


class FileType(NamedTuple):
    name: str
    content_type: str


@dataclass(frozen=True, slots=True)
class Exported:
    """Numbers of an export, which are also the result of its job."""

    tables: int
    entities: int


class ExportJob(JobKind[A, NoState]):
    """Base of export jobs; subclasses define the file type and write the content to a stream."""

    state, is_transactional = NoState, False

    @abstractmethod
    def file_type(self, run: Run[A]) -> FileType: ...

    @abstractmethod
    def export(self, run: Run[A], stream: BinaryIO, progress: Progress) -> Exported:
        """Write the file; ``progress`` raises JobInterrupted when the job is to be paused or cancelled."""

    def step(self, run: Run[A], state: NoState) -> Step[NoState]:
        files.discard_results(run.job)  # results of a process that was interrupted
        run.save(Step(state, starts_over=True))
        file, saved = files.of_run(run, *self.file_type(run)), 0

        def save(number: int) -> None:
            nonlocal saved
            if not connection.in_atomic_block:  # else all is read in one transaction
                run.save(Step(state, done=number - saved))
                saved = number
                run.rest()

        with files.writing(file) as stream:
            made = self.export(run, stream, save)
        files.complete(file)
        return Step(
            state,
            done=made.entities - saved,
            total=made.entities,
            counts={"exported": made.entities},
            result=asdict(made),
            is_finished=True,
        )

    def end(self, run: Run[A], state: NoState | None, status: JobStatus) -> None:
        if status is not JobStatus.DONE:
            files.discard_results(run.job)

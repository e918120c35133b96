"""Job that exports an account to a file for download."""

from dataclasses import dataclass
from typing import BinaryIO, Final

from storage.account_files import account_export
from storage.domain.access.roles import Capability
from storage.jobs.exporting import (
    Exported,
    ExportJob,
    FileType,
    Progress,
)
from storage.jobs.kinds import (
    JobRequest,
    NoState,
    Run,
    Step,
)
from storage.metrics import totals
from storage.models import Account


@dataclass(frozen=True, slots=True)
class Arguments:
    name: str


class _AccountExportJob(ExportJob[Arguments]):
    """Job that exports an account.

    Readers of the account cannot download the file, as it contains policies and settings.
    """

    name, arguments = "account.export", Arguments
    capability = reads_files = Capability.CONFIGURE

    def begin(self, run: Run[Arguments]) -> Step[NoState]:
        found = totals.contents([run.account.pk]).get(run.account.pk)
        return Step(NoState(), total=None if found is None else found.entities)

    def file_type(self, run: Run[Arguments]) -> FileType:
        return FileType(f"{run.account.name}.ndjson.gz", "application/gzip")

    def export(self, run: Run[Arguments], stream: BinaryIO, progress: Progress) -> Exported:
        done = account_export.export(run.account, stream, progress=progress)
        return Exported(done.tables, done.entities)


ACCOUNT_EXPORT_JOB: Final = _AccountExportJob()


def request(account: Account) -> JobRequest[Arguments, NoState]:
    return JobRequest(ACCOUNT_EXPORT_JOB, Arguments(account.name), account)

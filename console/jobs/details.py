"""Extension point for job pages by subject: see Hook.JOB_DETAILS in storage.core.subject."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.core import registry
from storage.core.subject import Hook
from storage.jobs.kinds import Failure
from storage.models import Job, Table


@dataclass(frozen=True, slots=True)
class FailureView:
    """Failed item of a job."""

    subject: str
    reason: str
    address: str = ""  # the page of that item


@dataclass(frozen=True, slots=True)
class NextStep:
    """Link to the next step after a job."""

    address: str
    label: str
    icon: str
    is_main: bool


@dataclass(frozen=True)
class JobDetails:
    """Details of a job kind, with defaults for jobs without any."""

    job: Job

    @property
    def template(self) -> str:
        """Return the template of a page section, which gets this as ``details``; empty for none."""
        return ""

    @property
    def is_preview(self) -> bool:
        """Return whether the job is a preview, whose counts are not changes."""
        return False

    @property
    def has_own_failures(self) -> bool:
        """Return whether failures are included in its counts."""
        return False

    @property
    def is_resumable(self) -> bool:
        return True

    @property
    def next_step(self) -> NextStep | None:
        return None

    @property
    def warnings(self) -> Sequence[str]:
        return ()

    def view_failure(self, failure: Failure) -> FailureView | None:
        """Return a failure with a kind-specific text; None if its refusal is sufficient."""


def table_of(job: Job) -> Table | None:
    """Return the table of a job; None if it was deleted."""
    table = job.table
    return None if table is None or table.deleted_at is not None or job.account is None else table


def details_of(job: Job) -> JobDetails:
    details: JobDetails | None = registry.first_answer(Hook.JOB_DETAILS, job)
    return JobDetails(job) if details is None else details

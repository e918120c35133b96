"""Job details of bulk edits and their previews."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _

from console.bulk_edit.draft import check_address
from console.bulk_edit.preview import describe_obstacle, describe_operation
from console.entities.entity_page import EntityTarget
from console.jobs.details import FailureView, JobDetails, NextStep, table_of
from storage.bulk_edit import bulk_edit_jobs
from storage.bulk_edit.bulk_edit_jobs import BULK_EDIT_JOB, PREVIEW_JOB
from storage.bulk_edit.bulk_edit_work import BulkEditRequest
from storage.jobs.kinds import Failure
from storage.models import Job

_KINDS: Final = frozenset({BULK_EDIT_JOB.name, PREVIEW_JOB.name})


@dataclass(frozen=True)
class BulkEditDetails(JobDetails):
    @property
    def template(self) -> str:
        return "console/bulk_edit/_job.html"

    @property
    def has_own_failures(self) -> bool:
        """Return False, as failures are counted as skipped."""
        return self.job.kind == BULK_EDIT_JOB.name

    @cached_property
    def edit(self) -> BulkEditRequest:
        return BulkEditRequest.load(json.loads(self.job.arguments["request"]))

    @property
    def operations(self) -> list[tuple[Promise | str, str]]:
        return [describe_operation(it) for it in self.edit.operations]

    @property
    def next_step(self) -> NextStep | None:
        """Return the page that checks the second copies of an ended edit."""
        table = table_of(self.job)
        if table is None or self.job.ended_at is None or self.job.kind != BULK_EDIT_JOB.name:
            return None
        address = check_address(table, self.edit.dump())
        return None if address is None else NextStep(address, _("Check copies"), "diff", is_main=False)

    def view_failure(self, failure: Failure) -> FailureView | None:
        skipped, table = bulk_edit_jobs.read_skipped(failure), table_of(self.job)
        if skipped is None:
            return None
        address = "" if table is None else EntityTarget(table, skipped.key).address()
        return FailureView(failure.subject, describe_obstacle(skipped.obstacle), address)


def find_details(job: Job) -> BulkEditDetails | None:
    return BulkEditDetails(job) if job.kind in _KINDS else None

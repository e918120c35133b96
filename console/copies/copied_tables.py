"""Progress and results of the tables of a copy from or to another service, for the page of its job."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.jobs.details import JobDetails, NextStep
from console.site.tags import grouped
from storage.copies import copy_jobs
from storage.copies.copy_jobs import COPY_IN_JOB, COPY_OUT_JOB
from storage.copies.progress import Phase
from storage.jobs.states import JobStatus
from storage.models import Job
from storage.tables import tables

COPY_KINDS: Final = frozenset({COPY_IN_JOB.name, COPY_OUT_JOB.name})
SHOWN: Final = 200  # tables
_NOTES: Final[Mapping[str, Promise]] = {
    "the source does not tell its stored access policies": gettext_lazy(
        "The source does not reveal its stored access policies, so they were not copied."
    ),
    "the target has no stored access policies": gettext_lazy(
        "The target has no stored access policies, so they were not copied."
    ),
}


@dataclass(frozen=True, slots=True)
class CopiedTableView:
    """Table of a copy; ``written`` are entities inserted or replaced, or to be."""

    job: Job
    found: Mapping[str, Any]
    is_linked: bool

    @property
    def source(self) -> str:
        return str(self.found["source"])

    @property
    def target(self) -> str:
        return str(self.found["target"])

    @property
    def written(self) -> int:
        return int(self.found["inserted"] + self.found["changed"])

    @property
    def is_unequal(self) -> bool:
        return self.found["verified"] is False

    @property
    def badge(self) -> tuple[str, str, str]:
        """Return text, kind and icon for the table's progress or verification."""
        counts, job = self.found, self.job
        if counts["verified"] is not None and job.status == JobStatus.DONE:
            kind = "danger" if self.is_unequal else "warn" if counts["extra"] else "ok"
            return self._comparison, kind, "circle-check" if kind == "ok" else "triangle-alert"
        if is_preview(job):
            return "", "", ""
        if job.status == JobStatus.DONE:
            return _("not compared"), "", "circle-off"
        if counts["phase"] == Phase.DONE:
            return _("finished"), "ok", "circle-check"
        if job.ended_at is not None:
            return _("incomplete"), "warn", "ban"
        return (
            (_("comparing"), "info", "hourglass")
            if counts["phase"] == Phase.SETTLE
            else (_("copying"), "info", "hourglass")
            if counts["read"]
            else (_("waiting"), "", "clock")
        )

    @property
    def _comparison(self) -> str:
        counts = self.found
        texts = {
            "differing": ngettext("%(shown)s different", "%(shown)s different", counts["differing"]),
            "missing": ngettext("%(shown)s missing", "%(shown)s missing", counts["missing"]),
            "extra": ngettext(
                "%(shown)s only in the target", "%(shown)s only in the target", counts["extra"]
            ),
        }
        parts = [text % {"shown": grouped(counts[name])} for name, text in texts.items() if counts[name]]
        return ", ".join(parts) or _("equal")

    @property
    def notes(self) -> list[str | Promise]:
        notes = [_NOTES.get(it, it) for it in self.found["notes"]]
        return notes if self.found["is_full"] else [_("Only changes since the last copy were read."), *notes]


@dataclass(frozen=True)
class CopyDetails(JobDetails):
    """Details of a copy job; its credentials are deleted at its end, so continuing it takes a new job."""

    @property
    def template(self) -> str:
        return "console/copies/_job.html" if self._tables else ""

    @property
    def is_preview(self) -> bool:
        return is_preview(self.job)

    @property
    def is_resumable(self) -> bool:
        return self.job.ended_at is None

    @property
    def next_step(self) -> NextStep | None:
        """Return the form that continues a copy, or executes a previewed one."""
        account = self.job.account
        if self.is_resumable or account is None:
            return None
        page = "copies:file" if self.job.arguments["file"] else "copies:start"
        address = f"{reverse(page, args=(account.name,))}?again={self.job.pk}"
        label = _("Continue to copy") if self.is_preview else _("Copy again")
        return NextStep(address, label, "copy", is_main=self.is_preview)

    @property
    def warnings(self) -> list[str]:
        if self.job.status == JobStatus.DONE and any(it.is_unequal for it in self._tables):
            return [_("Some tables differ from their sources. If clients still write to these, copy again.")]
        return []

    @cached_property
    def _tables(self) -> list[CopiedTableView]:
        return copied_tables(self.job)

    @property
    def tables(self) -> list[CopiedTableView]:
        return self._tables[:SHOWN]

    @property
    def other_tables(self) -> int:
        return len(self._tables) - SHOWN


def find_details(job: Job) -> CopyDetails | None:
    return CopyDetails(job) if job.kind in COPY_KINDS else None


def is_preview(job: Job) -> bool:
    return job.kind in COPY_KINDS and bool(job.arguments["options"]["dry_run"])


def copied_tables(job: Job) -> list[CopiedTableView]:
    """Return the tables of a copy, differing ones first; none for other jobs."""
    if job.kind not in COPY_KINDS:
        return []
    is_linked = job.kind == COPY_IN_JOB.name and job.account is not None
    names = set(tables.names(job.account)) if is_linked and job.account is not None else set()
    rows = [CopiedTableView(job, it, it["target"] in names) for it in copy_jobs.tables_of(job)]
    return sorted(rows, key=lambda it: not it.is_unequal)

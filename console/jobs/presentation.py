"""Jobs for display: name of each kind, progress and results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final

from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.jobs.details import FailureView, JobDetails, NextStep, details_of, table_of
from console.site.refusals import describe_refusal
from console.site.tags import grouped
from console.snapshots.originals import describe_original
from storage.account_files.account_building import built_by
from storage.branches.branches import BRANCH_JOB
from storage.core import registry
from storage.domain.access.actor import Actor
from storage.domain.refusals import Refused
from storage.domain.values.stored import read_member
from storage.jobs import files, jobs
from storage.jobs.kinds import Failure
from storage.jobs.states import JobStatus, Unit, Wish
from storage.models import Activity, Job, JobFile, Table
from storage.relations import history
from storage.runtime import job_runner
from storage.undo.undo import is_undoable

_TITLES: Final[Mapping[str, Callable[[Job], str]]] = {
    "account.copy": lambda job: _("Copy %(name)s") % {"name": job.arguments["origin"]},
    "account.delete": lambda job: _("Delete account %(name)s") % {"name": job.arguments["name"]},
    "account.export": lambda job: _("Export the account %(name)s") % {"name": job.arguments["name"]},
    "account.import": lambda job: _("Import the account %(name)s") % {"name": job.arguments["name"]},
    "branch.create": lambda job: _("Create the branch %(name)s") % {"name": job.arguments["name"]},
    "entity.apply": lambda job: _("Apply to %(name)s") % {"name": job.account.name if job.account else ""},
    "entity.revert": lambda job: _("Undo changes"),
    "snapshot.restore": lambda job: (
        _("Restore %(name)s") % {"name": job.arguments["name"]}
        if job.arguments["branch"] is None
        else _("Reset %(name)s") % {"name": job.account.name if job.account else ""}
    ),
    "entity.import": lambda job: _("Import into %(table)s") % {"table": job.table_name},
    "entity.import-local": lambda job: _("Import into %(table)s") % {"table": job.table_name},
    "entity.export": lambda job: (
        _("Export %(table)s") % {"table": job.table_name}
        if job.table_name
        else _("Export tables of %(account)s") % {"account": job.account and job.account.name}
    ),
    "entity.import-check": lambda job: (
        (_("Checked %(name)s") if job.ended_at else _("Checking %(name)s")) % {"name": _checked_file(job)}
    ),
    "table.index": lambda job: (
        _("Index %(property)s of %(table)s")
        % {"property": job.arguments["property"], "table": job.table_name}
    ),
}
_STATUSES: Final[Mapping[JobStatus, Promise]] = {
    JobStatus.WAITING: gettext_lazy("waiting"),
    JobStatus.RUNNING: gettext_lazy("running"),
    JobStatus.PAUSED: gettext_lazy("paused"),
    JobStatus.DONE: gettext_lazy("finished"),
    JobStatus.FAILED: gettext_lazy("failed"),
    JobStatus.CANCELLED: gettext_lazy("cancelled"),
}
_WISHES: Final[Mapping[Wish, Promise]] = {
    Wish.CANCEL: gettext_lazy("being cancelled"),
    Wish.PAUSE: gettext_lazy("being paused"),
}
# the kinds of badges and their icons
_BADGES: Final[Mapping[JobStatus, tuple[str, str]]] = {
    JobStatus.WAITING: ("", "clock"),
    JobStatus.RUNNING: ("info", "hourglass"),
    JobStatus.PAUSED: ("", "pause"),
    JobStatus.DONE: ("ok", "circle-check"),
    JobStatus.FAILED: ("danger", "triangle-alert"),
    JobStatus.CANCELLED: ("warn", "ban"),
}
_COUNTS: Final[Mapping[str, Promise]] = {
    "exported": gettext_lazy("exported"),
    "inserted": gettext_lazy("inserted"),
    "changed": gettext_lazy("changed"),
    "moved": gettext_lazy("moved"),
    "copied": gettext_lazy("copied"),
    "replaced": gettext_lazy("replaced"),
    "deleted": gettext_lazy("deleted"),
    "left_over": gettext_lazy("left over and deleted"),
    "unchanged": gettext_lazy("unchanged"),
    "skipped": gettext_lazy("skipped"),
    "rejected": gettext_lazy("rejected"),
}
STATUS_CHOICES: Final = [(status.value, label) for status, label in _STATUSES.items()]


@dataclass(frozen=True)
class JobView:
    """Job for display, with its label, progress, results and permitted actions."""

    job: Job
    may_change: bool = False  # whether its reader may cancel, pause and resume it

    @property
    def title(self) -> str:
        title = _TITLES.get(self.job.kind)
        return _declared_title(self.job) if title is None else title(self.job)

    @cached_property
    def details(self) -> JobDetails:
        return details_of(self.job)

    @property
    def label(self) -> Promise | str:
        wish, status = _WISHES.get(read_member(Wish, self.job.wish)), jobs.status_of(self.job)
        return _STATUSES.get(status, status.value) if wish is None else wish

    @property
    def badge(self) -> str:
        return _BADGES.get(jobs.status_of(self.job), _BADGES[JobStatus.WAITING])[0]

    @property
    def icon(self) -> str:
        return _BADGES.get(jobs.status_of(self.job), _BADGES[JobStatus.WAITING])[1]

    @property
    def goes_on(self) -> bool:
        """Return whether a page about the job should be refreshed."""
        return self.job.ended_at is None and (self.job.status != JobStatus.PAUSED or bool(self.job.wish))

    @property
    def can_cancel(self) -> bool:
        return self.may_change and self.job.ended_at is None and self.job.wish != Wish.CANCEL

    @property
    def can_pause(self) -> bool:
        is_possible = not jobs.is_of_one_process(self.job)
        return is_possible and self.can_cancel and self.job.status != JobStatus.PAUSED and not self.job.wish

    @property
    def can_resume(self) -> bool:
        is_stopped = self.job.status in (JobStatus.PAUSED, JobStatus.FAILED, JobStatus.CANCELLED)
        is_resumable = is_stopped and not jobs.is_of_one_process(self.job) and self.details.is_resumable
        return self.may_change and is_resumable and not self.job.wish

    @property
    def next_step(self) -> NextStep | None:
        return self.details.next_step if self.may_change else None

    @cached_property
    def percentage(self) -> int | None:
        return jobs.percentage(self.job)

    @property
    def amount(self) -> str:
        """Return the amount of work done; empty if the job counts nothing."""
        job = self.job
        if job.total is None:
            return self._measure(job.done) if job.done else ""
        # the total may be an estimate, or bytes of a file that is read in another encoding
        done = job.total if job.status == JobStatus.DONE else job.done
        return _("%(done)s of %(total)s") % {
            "done": self._measure(done),
            "total": self._measure(job.total),
        }

    @property
    def pace(self) -> str:
        """Return the speed and remaining time."""
        left, parts = jobs.time_left(self.job), []
        if left is not None:
            parts.append(_("about %(time)s left") % {"time": describe_duration(left)})
        if self.job.status == JobStatus.RUNNING and self.job.rate >= 1:
            parts.append(_("%(number)s per second") % {"number": self._measure(round(self.job.rate))})
        return " · ".join(parts)

    def _measure(self, number: int) -> str:
        return filesizeformat(number) if job_runner.unit_of(self.job) is Unit.BYTES else grouped(number)

    @property
    def took(self) -> str:
        job = self.job
        if job.started_at is None or job.ended_at is None:
            return ""
        return describe_duration(job.ended_at - job.started_at)

    @property
    def counts(self) -> list[tuple[str | Promise, int]]:
        counts = {} if self.details.is_preview else self.job.counts
        names = dict.fromkeys((*(name for name in _COUNTS if name in counts), *counts))
        return [(_COUNTS.get(name, name), counts[name]) for name in names]

    @property
    def opens(self) -> NextStep | None:
        """Return the link to what an ended job has worked on: its table, or its account."""
        account, table = self.job.account, self.table
        if self.job.ended_at is None or account is None:
            return None
        if table is not None:
            address, icon = reverse("entities:index", args=(account.name, table.name)), "table-2"
        elif self.job.table_name or self.job.status != JobStatus.DONE:
            return None
        else:
            address, icon = reverse("tables:index", args=(account.name,)), "database"
        label = _("Open %(name)s") % {"name": account.name if table is None else table.name}
        return NextStep(address, label, icon, is_main=True)

    @property
    def summary(self) -> str:
        """Return the results of an ended job in a line, such as "changed 20,000 · skipped 3"."""
        parts = [f"{name} {grouped(number)}" for name, number in self.counts if number]
        if self.failed:
            parts.append(f"{_('failed')} {grouped(self.failed)}")
        return " · ".join(parts)

    @cached_property
    def undone(self) -> Activity | None:
        """Return the activity that took its changes back; None if they stand."""
        return jobs.undone_by(self.job)

    @property
    def table(self) -> Table | None:
        """Return the table of the job; None if it was deleted."""
        return table_of(self.job)

    @property
    def failed(self) -> int:
        """Return the failures not included in counts."""
        return 0 if self.details.has_own_failures else self.job.failed

    @property
    def error(self) -> str:
        error = jobs.error_of(self.job)
        return "" if error is None else describe_refusal(Refused(error))

    @property
    def failures(self) -> list[FailureView]:
        return [self._view_failure(it) for it in jobs.failures_of(self.job)]

    def _view_failure(self, failure: Failure) -> FailureView:
        shown = self.details.view_failure(failure)
        return shown or FailureView(failure.subject, describe_refusal(Refused(failure.refusal)))

    @property
    def other_failures(self) -> int:
        return self.job.failed - len(self.job.failures)

    @property
    def warnings(self) -> list[str]:
        """Return advice on its results."""
        job = self.job
        if self.details.warnings:
            return list(self.details.warnings)
        if job.kind != BRANCH_JOB.name or job.status != JobStatus.DONE or job.account is None:
            return []
        return [describe_original(it) for it in built_by(job).originals]

    @property
    def can_undo(self) -> bool:
        """Return whether to offer an undo of its changes, without checking for later changes."""
        done, account = self.job.activity, self.job.account
        if not self.may_change or done is None or account is None or not is_undoable(done):
            return False
        is_of_entities = done.effective_verb.subject == "entity"
        return self.undone is None and (not is_of_entities or history.is_recorded(account))

    @property
    def files(self) -> list[JobFile]:
        return files.to_download(self.job)

    @property
    def by(self) -> Actor:
        return jobs.started_by(self.job)


def _checked_file(job: Job) -> str:
    """Return the name of a checked file, or of the table it was for once the file is deleted."""
    names = files.uploaded_names(job)
    return names[0] if names else job.table_name or str(job.arguments["new_table"])


def _declared_title(job: Job) -> str:
    title = registry.job_titles().get(job.kind)
    if title is None:
        return job.kind
    value: Any = job.arguments
    for name in title.other_if:
        value = value[name]
    return _(title.other if title.other_if and value else title.text) % {
        **job.arguments,
        "table": job.table_name,
    }


def describe_duration(duration: timedelta) -> str:
    """Format a duration in the largest fitting unit: seconds, minutes or hours."""
    seconds = max(0.1, round(duration.total_seconds(), 1))
    if seconds < 10:
        return _("%(number)s s") % {"number": number_format(seconds, 0 if seconds == round(seconds) else 1)}
    if seconds < 120:
        return ngettext("%(num)d second", "%(num)d seconds", round(seconds)) % {"num": round(seconds)}
    minutes = round(seconds / 60)
    if minutes < 120:
        return ngettext("%(num)d minute", "%(num)d minutes", minutes) % {"num": minutes}
    hours = round(minutes / 60)
    return ngettext("%(num)d hour", "%(num)d hours", hours) % {"num": hours}

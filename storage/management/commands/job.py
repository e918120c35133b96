"""The command `job`: list, show, await, cancel, pause and resume jobs."""

import argparse
from typing import Any

from django.core.management.base import CommandError

from storage.activity.activity import command_actor
from storage.jobs import files, jobs
from storage.jobs.jobs import JobFilter
from storage.jobs.states import JobStatus
from storage.management.command import DatabaseCommand, find_account
from storage.models import Job
from storage.runtime import job_runner

_LISTED = 50


class Command(DatabaseCommand):
    help = "List jobs, show one, wait for it, cancel, pause and resume it, also while the server runs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="list the newest jobs")
        listing.add_argument("account", nargs="?", help="only those of this account")
        listing.add_argument("--status", choices=[it.value for it in JobStatus], help="only these")
        for action, description in (
            ("show", "show a job"),
            ("wait", "wait for the end of a job; without a server, it runs here"),
            ("cancel", "end a job after its present step; what was done stays"),
            ("pause", "let a job wait until it is resumed"),
            ("resume", "let a job go on that was paused, cancelled or has failed"),
        ):
            actions.add_parser(action, help=description).add_argument("job", type=int, help="its number")

    def handle(self, *args: Any, action: str, **arguments: Any) -> None:
        if action == "list":
            self._list(arguments["account"], arguments["status"])
            return
        job = jobs.get(arguments["job"])
        if job is None:
            raise CommandError(f"There is no job {arguments['job']}.")
        getattr(self, f"_{action}")(job)

    def _list(self, account: str | None, status: str | None) -> None:
        conditions = JobFilter(
            account_ids=None if account is None else [find_account(account).pk],
            statuses=() if status is None else (JobStatus(status),),
        )
        for job in jobs.find(conditions)[:_LISTED]:
            self._write_line(job)

    def _write_line(self, job: Job) -> None:
        names = [name for name in (job.account and job.account.name, job.table_name) if name]
        share = jobs.percentage(job)
        progress = f"{job.done:,}" if share is None else f"{share} %"
        self.stdout.write(f"{job.pk}  {job.kind}  {'/'.join(names)}  {job.status}  {progress}")

    def _show(self, job: Job) -> None:
        self._write_line(job)
        by = jobs.started_by(job)
        self.stdout.write(f"started {job.created_at:%Y-%m-%d %H:%M:%S} UTC by {by.name or by.kind}")
        unit = job_runner.unit_of(job)
        if job.total is not None:
            self.stdout.write(f"{job.done:,} of {job.total:,} {unit}")
        left = jobs.time_left(job)
        if left is not None:
            self.stdout.write(f"{job.rate:,.0f} {unit} per second, {left} left")
        for name, number in job.counts.items():
            self.stdout.write(f"{name}: {number:,}")
        for failure in jobs.failures_of(job):
            self.stdout.write(f"{failure.subject}: {failure.refusal}")
        if job.failed > len(job.failures):
            self.stdout.write(f"and {job.failed - len(job.failures):,} more")
        for file in files.of_job(job):
            self.stdout.write(f"{file.name}  {file.size:,} bytes  until {file.expires_at:%Y-%m-%d %H:%M} UTC")
        error = jobs.error_of(job)
        if error is not None:
            self.stdout.write(str(error))

    def _wait(self, job: Job) -> None:
        job = job_runner.finish(job)
        self._show(job)
        if job.status != JobStatus.DONE:
            raise CommandError(f"The job {job.pk} is not done: its status is {job.status}.")

    def _cancel(self, job: Job) -> None:
        self._write_line(jobs.cancel(job, by=command_actor()))

    def _pause(self, job: Job) -> None:
        self._write_line(jobs.pause(job, by=command_actor()))

    def _resume(self, job: Job) -> None:
        self._write_line(job_runner.resume(job, by=command_actor()))

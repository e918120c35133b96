"""Tray of jobs in the top bar: the user's running jobs, and ended ones not yet seen."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpRequest

from console.jobs.presentation import JobView
from storage.jobs import jobs
from storage.jobs.jobs import Starter
from storage.jobs.states import JobStatus


@dataclass(frozen=True)
class Tray:
    """Tray of jobs, loaded lazily as partial responses have no top bar."""

    user: Starter

    @cached_property
    def jobs(self) -> list[JobView]:
        return [JobView(job) for job in jobs.for_tray(self.user)]

    @property
    def running(self) -> int:
        return sum(it.goes_on for it in self.jobs)

    @property
    def failed(self) -> int:
        return sum(it.job.status == JobStatus.FAILED for it in self.jobs)

    @property
    def ended(self) -> int:
        return sum(it.job.ended_at is not None for it in self.jobs)


def context(request: HttpRequest) -> dict[str, Any]:
    # a request that fails early has no user yet
    user = getattr(request, "user", None)
    return {"job_tray": Tray(user)} if user is not None and user.is_authenticated else {}

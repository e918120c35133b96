"""Jobs awaited by a page for a few seconds, then shown on the job's page."""

from typing import Any, Final

from django.http import HttpRequest

from console.site.access import actor_of
from storage.jobs import jobs, running
from storage.jobs.kinds import JobRequest
from storage.models import Job

PATIENCE: Final = 5.0  # seconds
LARGE: Final = 20_000  # entities, with which it takes longer; a copy would begin again


def complete(request: HttpRequest, request_of_job: JobRequest[Any, Any], *, entities: int = 0) -> Job:
    """Run a job and return it when it ends, stops or takes too long; a server process then continues it.

    Above LARGE ``entities``, an approximate number, the job is not begun in the request.
    """
    if entities > LARGE:
        return jobs.start_requested(request_of_job, by=actor_of(request))
    return running.complete(request_of_job, by=actor_of(request), patience=PATIENCE)

"""Work that a page waits for, but not for long: then the page of the job shows how it goes on."""

from typing import Any, Final

from django.http import HttpRequest

from console.site.access import actor_of
from storage.jobs import jobs, running
from storage.jobs.kinds import JobRequest
from storage.models import Job

PATIENCE: Final = 5.0  # seconds
LARGE: Final = 20_000  # entities, with which it takes longer; a copy would begin again


def complete(request: HttpRequest, request_of_job: JobRequest[Any, Any], *, entities: int = 0) -> Job:
    """Return the job once it has ended or was stopped; if it takes long, return it earlier.

    A server process then continues it. ``entities`` is their approximate number; if they are many, the job is
    not begun in the request.
    """
    if entities > LARGE:
        return jobs.start_requested(request_of_job, by=actor_of(request))
    return running.complete(request_of_job, by=actor_of(request), patience=PATIENCE)

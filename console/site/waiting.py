"""Work that a page waits for, but not for long: then the page of the job shows how it goes on."""

from typing import Any, Final

from django.http import HttpRequest

from console.site.access import actor_of
from storage.models import Job
from storage.operations.jobs import running
from storage.operations.jobs.kinds import JobRequest

PATIENCE: Final = 5.0  # seconds


def complete(request: HttpRequest, wanted: JobRequest[Any, Any]) -> Job:
    """Return the job once it has ended or was stopped, or when it takes long: then a server process goes on with it."""
    return running.complete(wanted, by=actor_of(request), patience=PATIENCE)

"""How much users may upload for imports."""

from django.db.models import Q, Sum
from django.utils import timezone

from storage.domain.access.actor import Actor
from storage.domain.refusals import Reason, Refused
from storage.domain.service.quotas import UPLOADS
from storage.models import JobFile
from storage.operations.accounts import quotas
from storage.operations.jobs import files


class UploadTooLarge(Refused):
    """A file is larger than what a user may still upload."""


def require_room(by: Actor, size: int) -> None:
    """Raise UploadTooLarge if a user may not upload so many bytes more.

    Files that wait for their jobs, or are read by them, count.
    """
    waits = Q(job=None, expires_at__gt=timezone.now()) | Q(job__isnull=False, job__ended_at=None)
    found = JobFile.objects.filter(waits, owner=files.owner_of(by), is_result=False)
    used: int = found.aggregate(total=Sum("size"))["total"] or 0
    room = max(0, (quotas.limit(UPLOADS) << 20) - used)
    if size > room:
        raise UploadTooLarge(Reason.FILE_TOO_LARGE, megabytes=room >> 20)

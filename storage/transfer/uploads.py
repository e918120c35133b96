"""Uploads of users in pieces, and their quota."""

from django.db.models import Q, Sum
from django.utils import timezone

from storage.accounts import quotas
from storage.core.quotas import UPLOADS
from storage.domain.access.actor import Actor
from storage.domain.refusals import Reason, Refused
from storage.jobs import files
from storage.models import Account, JobFile


class UploadTooLarge(Refused):
    """The file exceeds the user's remaining upload quota."""


def require_room(by: Actor, size: int) -> None:
    """Raise UploadTooLarge if a user may not upload so many more bytes."""
    waits = Q(job=None, expires_at__gt=timezone.now()) | Q(job__isnull=False, job__ended_at=None)
    waiting_files = JobFile.objects.filter(waits, owner=files.owner_of(by), is_result=False)
    used: int = waiting_files.aggregate(total=Sum("size"))["total"] or 0
    room = max(0, (quotas.limit(UPLOADS) << 20) - used)
    if size > room:
        raise UploadTooLarge(Reason.FILE_TOO_LARGE, megabytes=room >> 20)


def begin(account: Account, name: str, size: int, *, by: Actor) -> JobFile:
    """Create an empty file for an upload of ``size`` bytes; raises UploadTooLarge."""
    require_room(by, size)
    return files.create(name[:255] or "upload", account=account, by=by)


def receive(file: JobFile, whole: int, start: int, content: bytes, *, by: Actor) -> int:
    """Write a piece of a file of ``whole`` bytes; return the number of bytes stored, where the upload continues.

    Raises UploadTooLarge, as concurrent uploads share a quota.
    """
    require_room(by, len(content))
    size = files.append_at(file, start, content[: max(0, whole - start)])
    if size == whole:
        files.complete(file)
    return size


def get(account: Account, pk: int, *, by: Actor) -> JobFile | None:
    """Return a user's uploaded or incomplete file; None if it has expired."""
    found = JobFile.objects.filter(pk=pk, account=account, owner=files.owner_of(by), is_result=False)
    return found.filter(expires_at__gt=timezone.now()).first()

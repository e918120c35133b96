"""Base of operations whose body is a file: see storage.rest.uploads."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial

from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from storage.jobs import files
from storage.models import JobFile
from storage.rest import problems, uploads
from storage.rest.problems import Problem
from storage.rest.uploads import Upload
from storage.rest.views import AccountScopedViewSet
from storage.transfer import uploads as upload_quota
from storage.transfer.uploads import UploadTooLarge


class UploadViewSet(AccountScopedViewSet):
    def get_throttles(self) -> list[BaseThrottle]:
        """Throttle an upload once, although its view runs twice."""
        return [] if self.upload.has_arrived else super().get_throttles()

    @cached_property
    def upload(self) -> Upload:
        return uploads.of_request(self.request._request)

    def receive(self, name: str) -> JobFile | None:
        """Return the uploaded file once it is complete; before, accept the upload.

        Raises Problem if there is no room.
        """
        upload = self.upload
        if upload.file is None:
            check = partial(upload_quota.require_room, self.by)
            try:
                check(upload.size)
            except UploadTooLarge as refused:
                raise Problem(problems.TOO_LARGE, str(refused)) from None
            upload.accept(files.create(name or "upload", account=self.account, by=self.by), check)
        return upload.file if upload.has_arrived else None

    def ask_for_body(self) -> Response:
        """Return a placeholder response once a file is accepted, which is not sent to the client."""
        return Response(status=202)


@contextmanager
def discarding(file: JobFile) -> Iterator[None]:
    """Delete a file unless a job takes it in the block."""
    try:
        yield
    except Exception:
        files.discard(file)
        raise

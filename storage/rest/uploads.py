"""Uploads: request bodies of any size, written to a job file in pieces."""

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.http import HttpRequest

from storage.domain.refusals import Refused
from storage.jobs import files
from storage.models import JobFile
from storage.runtime.threads import in_upload_thread

_PATHS: Final = re.compile(r"/ui/api/v1/accounts/[^/]+/(tables/[^/]+/import|copy-from-file)")
_STATE: Final = "upload"  # in the scope's state
_LINGER: Final = (
    5.0  # seconds for a client to read an answer while it still sends: closing would take it away
)
_OF_BODIES: Final = (b"content-length", b"transfer-encoding")

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(slots=True)
class Upload:
    """Upload in progress; ``size`` is the announced length, 0 for a chunked body.

    ``file`` is the target once a view has accepted the upload; ``check`` refuses further bytes when other
    uploads have used up the space.
    """

    size: int
    file: JobFile | None = None
    check: Callable[[int], object] = lambda _: None
    has_arrived: bool = False

    def accept(self, file: JobFile, check: Callable[[int], object]) -> None:
        self.file, self.check = file, check

    def write(self, piece: bytes, further: int) -> None:
        """Write a piece, in a thread; ``further`` is the number of bytes received after it. Raises Refused."""
        assert self.file is not None
        self.check(len(piece) + further)
        files.append(self.file, piece)


class _WholeUpload(Upload):
    """Body of a request under WSGI, which is read at once."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(int(request.META.get("CONTENT_LENGTH") or 0))
        self._request = request

    def accept(self, file: JobFile, check: Callable[[int], object]) -> None:
        super().accept(file, check)
        files.upload(file, iter(partial(self._request.read, files.PIECE), b""))
        self.has_arrived = True


class UploadRefused(Exception):
    """The rest of the body is refused."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status  # the reason, as the status of the answer


def of_request(request: HttpRequest) -> Upload:
    """Return the upload of a request to an upload path."""
    scope = getattr(request, "scope", None)
    if scope is None:
        return _WholeUpload(request)
    upload: Upload = scope["state"][_STATE]
    return upload


def takes_upload(scope: Scope) -> bool:
    return scope["method"] == "POST" and _PATHS.fullmatch(scope["path"]) is not None


async def run(
    application: Application, scope: Scope, receive: Receive, send: Send, *, size: int, patience: float
) -> None:
    """Serve an upload request with an application; each piece must arrive within ``patience`` seconds.

    Raises UploadRefused, and ServerBusy if the database does not accept a piece.
    """
    upload = Upload(size)
    headers = [header for header in scope["headers"] if header[0] not in _OF_BODIES]

    def attempt() -> Scope:
        return {**scope, "headers": headers, "state": {**scope["state"], _STATE: upload}}

    if await _ask(application, attempt(), upload, send):
        await _linger(receive, send)
        return
    file = upload.file
    assert file is not None
    try:
        if not await _receive(upload, receive, patience):
            return
        await in_upload_thread(partial(files.complete, file))
        upload.has_arrived = True
        await application(attempt(), _after_body(receive), send)
    finally:
        # also if the view refuses it now: then no job has taken it
        await asyncio.shield(in_upload_thread(partial(files.discard, file)))


async def _ask(application: Application, scope: Scope, upload: Upload, send: Send) -> bool:
    """Run the view before the body arrives; return whether it has responded."""

    async def send_refusal(message: Message) -> None:
        if upload.file is not None:
            return
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        else:
            message = {**message, "more_body": True}
        await send(message)

    never = asyncio.Event()

    async def wait() -> Message:
        await never.wait()
        return {"type": "http.disconnect"}

    await application(scope, _after_body(wait), send_refusal)
    return upload.file is None


async def _linger(receive: Receive, send: Send) -> None:
    """End a response after the client has finished sending, or had time to read it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER):
            while (message := await receive())["type"] != "http.disconnect" and message.get("more_body"):
                pass
    await send({"type": "http.response.body"})


def _after_body(receive: Receive) -> Receive:
    """Return a receive callable that first yields the end of the body, then delegates."""
    is_asked = False

    async def receive_next() -> Message:
        nonlocal is_asked
        if is_asked:
            return await receive()
        is_asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return receive_next


async def _receive(upload: Upload, receive: Receive, patience: float) -> bool:
    """Receive a body into the file of an upload; return False if the client disconnects."""
    waiting, goes_on = bytearray(), True
    while goes_on or waiting:
        try:
            async with asyncio.timeout(patience):
                while goes_on and len(waiting) < files.PIECE:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return False
                    waiting += message.get("body", b"")
                    goes_on = message.get("more_body", False)
        except TimeoutError:
            raise UploadRefused(408) from None
        piece = bytes(waiting[: files.PIECE])
        del waiting[: files.PIECE]
        try:
            await in_upload_thread(partial(upload.write, piece, len(waiting)))
        except Refused:
            raise UploadRefused(413) from None
    return True

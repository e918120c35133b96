"""Files that are sent while they are made: nothing of them is kept in memory or on the disk."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

_PIECE: Final = 64 * 1024  # characters that are sent at once


def streamed(
    request: HttpRequest, pieces: Iterator[str], *, content_type: str, filename: str
) -> StreamingHttpResponse:
    """``filename`` in ASCII."""
    gathered = _gathered(pieces)
    # a server that is asynchronous would first wait for all of what is not
    content = _in_thread(gathered) if isinstance(request, ASGIRequest) else gathered
    response = StreamingHttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    response["Cache-Control"] = "no-store"
    return response


def _gathered(pieces: Iterator[str]) -> Generator[bytes, None, None]:
    waiting: list[str] = []
    length = 0
    try:
        for piece in pieces:
            waiting.append(piece)
            length += len(piece)
            if length >= _PIECE:
                yield "".join(waiting).encode(errors="surrogatepass")
                waiting, length = [], 0
        yield "".join(waiting).encode(errors="surrogatepass")
    finally:
        if isinstance(pieces, Generator):
            pieces.close()


async def _in_thread(pieces: Generator[bytes, None, None]) -> AsyncIterator[bytes]:
    following = sync_to_async(lambda: next(pieces, None))
    try:
        while (piece := await following()) is not None:
            yield piece
    finally:
        # also when the reader is gone: what is to be written down at the end may not wait for the garbage collector
        await asyncio.shield(sync_to_async(pieces.close)())

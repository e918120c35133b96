"""Downloads that are sent while they are made, so that none of them is held in memory, and CSV files."""

import asyncio
import csv
import json
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

_PIECE: Final = 64 * 1024  # characters sent at once
# a spreadsheet runs text that begins like this as a formula, and clients choose their own names
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def stream_file(
    request: HttpRequest, pieces: Iterator[str], *, content_type: str, filename: str
) -> StreamingHttpResponse:
    """Send the pieces as a file; ``filename`` must be ASCII."""
    gathered = _gathered(pieces)
    # given a synchronous iterator, an ASGI server would first collect all of it
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
        # also when the client is gone: the record made at the end must not wait for the garbage collector
        await asyncio.shield(sync_to_async(pieces.close)())


def write_csv(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """Yield the lines of a file with a header; lists and mappings become JSON, None an empty field."""
    line = _LineBuffer()
    writer = csv.writer(line)
    writer.writerow(columns)
    yield line.text
    for row in rows:
        writer.writerow([_field(value) for value in row])
        yield line.text


class _LineBuffer:
    """A file for the csv module to write to; it keeps only the last line."""

    text = ""

    def write(self, line: str) -> None:
        self.text = line


def _field(value: Any) -> object:
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value

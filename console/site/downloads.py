"""Streaming downloads, and lists as CSV or NDJSON."""

import csv
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse

from console.site import errors
from storage.runtime.threads import Download, TooManyDownloads
from storage.tabular.formulas import escape_formula

Item = TypeVar("Item")

_PIECE: Final = 64 * 1024  # characters sent at once


def stream_file(
    request: HttpRequest, pieces: Iterator[str], *, content_type: str, filename: str
) -> HttpResponse | StreamingHttpResponse:
    """Stream pieces as a file; ``filename`` must be ASCII."""
    return stream_bytes(request, _gathered(pieces), content_type=content_type, filename=filename)


def stream_bytes(
    request: HttpRequest, gathered: Generator[bytes, None, Any], *, content_type: str, filename: str
) -> HttpResponse | StreamingHttpResponse:
    try:
        # given a synchronous iterator, an ASGI server would first collect all of it
        content = (
            Download(gathered, f"user {request.user.pk}") if isinstance(request, ASGIRequest) else gathered
        )
    except TooManyDownloads:
        return errors.too_many_downloads(request)
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


def stream_list(
    request: HttpRequest,
    name: str,
    items: Iterable[Item],
    fields: Mapping[str, Callable[[Item], Any]],
    *,
    more: Callable[[Item], dict[str, Any]] | None = None,
) -> HttpResponse | StreamingHttpResponse:
    """Stream a list as CSV or NDJSON, by ``format`` in the address."""
    match request.GET.get("format", ""):
        case "csv" as extension:
            pieces, content_type = _write_csv(items, fields), "text/csv; charset=utf-8"
        case "ndjson" as extension:
            pieces, content_type = _write_ndjson(items, fields, more), "application/x-ndjson; charset=utf-8"
        case _:
            raise Http404
    return stream_file(request, pieces, content_type=content_type, filename=f"{name}.{extension}")


def _write_ndjson(
    items: Iterable[Item],
    fields: Mapping[str, Callable[[Item], Any]],
    more: Callable[[Item], dict[str, Any]] | None,
) -> Iterator[str]:
    for item in items:
        row = {name: read(item) for name, read in fields.items()}
        # in ASCII: a String may hold what UTF-8 cannot
        yield json.dumps(row | more(item) if more else row) + "\n"


def _write_csv(items: Iterable[Item], fields: Mapping[str, Callable[[Item], Any]]) -> Iterator[str]:
    """Yield CSV lines with a header; lists and mappings become JSON, None an empty field."""
    line = _LineBuffer()
    writer = csv.writer(line)
    writer.writerow(fields)
    yield line.text
    for item in items:
        writer.writerow([_field(read(item)) for read in fields.values()])
        yield line.text


class _LineBuffer:
    """A file-like object for the csv module, which keeps only the last line."""

    text = ""

    def write(self, line: str) -> None:
        self.text = line


def _field(value: Any) -> object:
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return escape_formula(value)
    return "" if value is None else value

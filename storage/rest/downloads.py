"""Download of job files, whole or resumed."""

import re
from typing import Final
from urllib.parse import quote

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from storage.jobs import files
from storage.models import JobFile
from storage.runtime.threads import Download

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


def respond(request: HttpRequest, file: JobFile, *, reader: str) -> HttpResponse | StreamingHttpResponse:
    """Respond with a file, or with the requested range of it; raises TooManyDownloads.

    Downloads are counted by ``reader``. A request for several ranges gets the whole file.
    """
    etag = f'"job-file-{file.pk}"'
    headers = {
        "Accept-Ranges": "bytes",
        "Cache-Control": "no-store",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}",
        "Content-Type": file.content_type or "application/octet-stream",
        "ETag": etag,
        "X-Content-Type-Options": "nosniff",
    }
    start, end, status = 0, file.size, 200
    span = _RANGE.fullmatch(request.headers.get("Range", ""))
    if span is not None and any(span.groups()) and request.headers.get("If-Range", etag) == etag:
        first, last = span.groups()
        start = int(first) if first else max(0, file.size - int(last))
        end = min(file.size, int(last) + 1) if first and last else file.size
        if start >= end:
            return HttpResponse(status=416, headers={"Content-Range": f"bytes */{file.size}"})
        status, headers["Content-Range"] = 206, f"bytes {start}-{end - 1}/{file.size}"
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers)
    pieces = files.read(file, start, end)
    # given a synchronous iterator, an ASGI server would first collect all of it
    content = Download(pieces, reader) if isinstance(request, ASGIRequest) else pieces
    return StreamingHttpResponse(content, status=status, headers=headers)

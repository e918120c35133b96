"""Multipart batches of entity group transactions: parsing, and serialization of responses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import uuid4

from storage.domain.errors import InvalidHeaderValue, InvalidInput, MediaTypeNotSupported
from storage.protocol.errors import reason_phrase

MAX_CHANGES: Final = 100

_CHANGES: Final = frozenset({"POST", "PUT", "MERGE", "PATCH", "DELETE"})
_METHODS: Final = {method.encode(): method for method in ("GET", *_CHANGES)}
_MAX_HEAD: Final = 64 * 1024  # bytes of a part's request line and headers, as of a request
_MAX_HEADER_LINES: Final = 100
_MAX_PARAMETERS: Final = 1024
_MAX_CACHED: Final = 512
_ENDS: Final = b"\n}"  # the C++ SDK writes no line end behind JSON
_BLANK: Final = b" \t\r\n"
_NOT_BLANK: Final = re.compile(rb"[^ \t\r\n]")
_TOKEN: Final = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_HTTP: Final = b"application/http"
_SUBRESPONSE: Final = b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
_COSMOS_SUBRESPONSE: Final = _SUBRESPONSE.replace(b"\r\n", b"\n")


class PartHead(NamedTuple):
    """Head of a part: method and headers with lower-case names."""

    method: str
    headers: Mapping[bytes, bytes]
    content_id: bytes | None


class Part(NamedTuple):
    """Part of a batch, one operation; ``target`` is the URI as sent."""

    head: PartHead
    target: bytes
    body: bytes


class Query(NamedTuple):
    part: Part


class ChangeSet(NamedTuple):
    """Change set; of an oversized one only MAX_CHANGES + 1 parts are parsed."""

    parts: list[Part]


class AnswerPart(NamedTuple):
    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes = b""


def read_batch(content_type: bytes | None, body: bytes) -> Query | ChangeSet:
    segments = _split(body, _envelope_boundary(content_type))
    segment = next(segments, None)
    if segment is None or next(segments, None) is not None:
        raise InvalidInput  # a batch is one change set or one query
    headers, start = _read_headers(segment, 0)
    media_type, parameters = _split_media_type(headers.get(b"content-type", b""))
    if media_type != b"multipart/mixed":
        return Query(_read_query(segment))
    boundary = _boundary(parameters)
    if not boundary:
        raise InvalidInput
    return ChangeSet(_read_changes(segment, start, boundary))


def write_change_set(parts: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return content type and body of a change set; a failed one has a single part, an empty one none."""
    batch, changes = b"batchresponse_%b" % _guid(), b"changesetresponse_%b" % _guid()
    opening = b"--%b\r\nContent-Type: multipart/mixed; boundary=%b\r\n\r\n" % (batch, changes)
    delimiter = b"--%b\r\n" % changes
    written = delimiter + delimiter.join(parts) if parts else b""
    closing = b"--%b--\r\n--%b--\r\n" % (changes, batch)
    return b"multipart/mixed; boundary=" + batch, opening + written + closing


def write_cosmos_change_set(parts: Sequence[AnswerPart]) -> tuple[bytes, bytes]:
    """Return content type and body of a Cosmos change set, which mixes CRLF and LF as the service does."""
    batch, changes = b"batchresponse_%b" % _guid(), b"changesetresponse_%b" % _guid()
    written = [b"--%b\r\nContent-Type: multipart/mixed; boundary=%b\r\n\r\n" % (batch, changes)]
    for part in parts:
        headers = b"".join([b"%b: %b\r\n" % header for header in part.headers])
        head = b"HTTP/1.1 %d %b\r\n%b\r\n" % (part.status, reason_phrase(part.status), headers)
        end = b"" if part.body.endswith(b"\n") else b"\r\n"  # an error has its own
        written.append(b"--%b\n%b%b%b%b" % (changes, _COSMOS_SUBRESPONSE, head, part.body, end))
    written.append(b"--%b--\n--%b--\r\n" % (changes, batch))
    return b"multipart/mixed; boundary=" + batch, b"".join(written)


def write_query(part: bytes) -> tuple[bytes, bytes]:
    """Return content type and body of the response to a batch with a single query."""
    batch = b"batchresponse_%b" % _guid()
    return b"multipart/mixed; boundary=" + batch, b"--%b\r\n%b--%b--\r\n" % (batch, part, batch)


def write_part(part: AnswerPart) -> bytes:
    status = b"%bHTTP/1.1 %d %b\r\n" % (_SUBRESPONSE, part.status, reason_phrase(part.status))
    headers = b"".join([b"%b: %b\r\n" % header for header in part.headers])
    return b"%b%b\r\n%b\r\n" % (status, headers, part.body)


def _guid() -> bytes:
    return str(uuid4()).encode()


def _read_changes(segment: bytes, start: int, boundary: bytes) -> list[Part]:
    parts: list[Part] = []
    reader = _PartReader()
    if b"--" + boundary not in segment:
        raise InvalidInput
    texts = list(islice(_split(segment, boundary, start), MAX_CHANGES + 1))
    if len(texts) == 1 and not texts[0].strip():
        return []  # some clients write no part as a blank one
    for text in texts:
        parts.append(reader.read(text))
        if parts[-1].head.method not in _CHANGES:
            raise InvalidInput
    return parts


def _read_query(segment: bytes) -> Part:
    part = _PartReader().read(segment)
    if part.head.method != "GET":
        raise InvalidInput
    return part


# the line of a request for one entity whose table and options do not depend on the key
_KEYED_LINE: Final = re.compile(rb"([A-Z]++) (([^ ?(%\r\n]++)\([^?/\r\n]*\)) HTTP/1\.1\r\n")


class _PartReader:
    """Reader of the parts of a batch, which mostly begin alike."""

    def __init__(self) -> None:
        self._mime = b""  # how the parts begin, up to and with the blank line
        # parsed heads by everything but key and length
        self._heads: dict[object, tuple[PartHead, bytes]] = {}

    def read(self, segment: bytes) -> Part:
        mime = self._mime
        at = _skip_blank(
            segment, len(mime) if mime and segment.startswith(mime) else self._read_mime(segment)
        )
        blank_line = segment.find(b"\r\n\r\n", at) + 4
        keyed = _KEYED_LINE.match(segment, at)
        others = _without_length(segment[at if keyed is None else keyed.end() : blank_line])
        form = others if keyed is None else (keyed[1], keyed[3], others)
        known = self._heads.get(form)
        if known is not None and blank_line - at <= _MAX_HEAD:
            head, target = known
            return Part(head, target if keyed is None else keyed[2], segment[blank_line:].strip(_BLANK))
        head, target, end = _read_part_head(segment, at)
        if end - at > _MAX_HEAD:
            raise InvalidInput
        if end == blank_line:
            self._heads[form] = head, target
        return Part(head, target, segment[end:].strip(_BLANK))

    def _read_mime(self, segment: bytes) -> int:
        """Check the MIME header of a part; return the position after it."""
        mime, at = _read_headers(segment, 0)
        content_type = mime.get(b"content-type", _HTTP)
        if content_type != _HTTP and _split_media_type(content_type)[0] != _HTTP:
            raise InvalidInput
        if mime and segment.endswith(b"\r\n\r\n", 0, at):  # without a blank line, more of it could follow
            self._mime = segment[:at]
        return at


def _without_length(headers: bytes) -> bytes:
    """Remove the Content-Length header, so that heads compare equal for bodies of different length."""
    at = headers.find(b"\r\nContent-Length: ")
    return headers if at < 0 else headers[:at] + headers[headers.find(b"\r\n", at + 2) :]


def _read_part_head(segment: bytes, at: int) -> tuple[PartHead, bytes, int]:
    end = _line_end(segment, at)
    method, _, rest = segment[at:end].strip().partition(b" ")
    target, _, version = rest.strip().rpartition(b" ")
    if not target or not version.startswith(b"HTTP/") or method not in _METHODS:
        raise InvalidInput
    headers, end = _read_headers(segment, end)
    return PartHead(_METHODS[method], headers, headers.get(b"content-id")), target.strip(), end


def _split(text: bytes, boundary: bytes, start: int = 0) -> Iterator[bytes]:
    """Yield the texts between the delimiters; the closing delimiter is optional."""
    delimiter = b"--" + boundary
    begin = -1
    at = text.find(delimiter, start)
    while at >= 0:
        after = at + len(delimiter)
        if at == start or text[at - 1] in _ENDS:
            end = _line_end(text, after)
            rest = text[after:end].strip()
            # anything else is a line of a body, or the delimiter of a longer boundary
            if rest == b"" or rest == b"--":
                if begin >= 0:
                    yield text[begin:at]
                if rest:
                    return
                begin = after = end
        at = text.find(delimiter, after)
    if begin >= 0 and _skip_blank(text, begin) < len(text):
        yield text[begin:]


def _read_headers(text: bytes, at: int) -> tuple[Mapping[bytes, bytes], int]:
    """Parse header fields at a position; return them and the position after the blank line."""
    at = _skip_blank(text, at)
    blank_line = text.find(b"\r\n\r\n", at, at + _MAX_CACHED)
    if blank_line < 0:
        return _scan_headers(text, at)
    # most parts of a change set have the same headers
    headers, length = _scan_known_headers(text[at : blank_line + 4])
    return headers, at + length


@lru_cache(maxsize=512)
def _scan_known_headers(text: bytes) -> tuple[Mapping[bytes, bytes], int]:
    headers, end = _scan_headers(text, 0)
    return MappingProxyType(headers), end


def _scan_headers(text: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    headers: dict[bytes, bytes] = {}
    name = b""
    for _ in range(_MAX_HEADER_LINES):
        end = _line_end(text, at)
        line = text[at:end]
        field, colon, value = line.partition(b":")
        if not line.strip():
            return headers, end
        if name and line[0] in b" \t":
            headers[name] += b" " + line.strip()
        elif colon and field and not field.translate(None, _TOKEN):
            name, value = field.lower(), value.strip()
            headers[name] = headers[name] + b", " + value if name in headers else value
        else:
            return headers, at
        at = end
    raise InvalidInput


def _envelope_boundary(content_type: bytes | None) -> bytes:
    media_type, parameters = _split_media_type(content_type or b"")
    if media_type != b"multipart/mixed":
        raise MediaTypeNotSupported
    boundary = _boundary(parameters)
    if not boundary:
        value = (content_type or b"").decode("latin-1")
        raise InvalidHeaderValue(HeaderName="Content-Type", HeaderValue=value)
    return boundary


def _split_media_type(value: bytes) -> tuple[bytes, bytes]:
    media_type, _, parameters = value.partition(b";")
    return media_type.strip().lower(), parameters


def _boundary(parameters: bytes) -> bytes:
    """Return the value of ``boundary``; empty if it is missing or invalid."""
    rest = parameters if len(parameters) <= _MAX_PARAMETERS else b""
    while rest:
        names, _, rest = rest.partition(b"=")
        rest = rest.lstrip()
        quote = rest.startswith(b'"')
        value, _, rest = rest[1:].partition(b'"') if quote else rest.partition(b";")
        if names.rpartition(b";")[2].strip().lower() == b"boundary":
            return value if quote else value.strip()
    return b""


def _skip_blank(text: bytes, at: int) -> int:
    if at < len(text) and text[at] not in _BLANK:
        return at
    found = _NOT_BLANK.search(text, at)
    return found.start() if found else len(text)


def _line_end(text: bytes, at: int) -> int:
    return text.find(b"\n", at) + 1 or len(text)

"""Takes the answer to a batch apart into its sub-responses, as strictly as the fussiest client."""

import re

from .client import Reply


def read(reply: Reply) -> list[Reply]:
    body = reply.body
    if (
        reply.header("x-ms-version") is None
    ):  # an account of the kind cosmos: some lines end with a line feed only
        body = re.sub(rb"(?<!\r)\n", b"\r\n", body)
    parts = [_split_head(part) for part in _split(body, _boundary(reply.header("Content-Type")))]
    replies = []
    for headers, body in parts:
        media_type = dict(headers)["Content-Type"]
        if media_type.startswith("multipart/mixed"):
            replies += [_read_http(part) for part in _split(body, _boundary(media_type))]
        else:
            replies.append(_read_http(_join_head(headers, body)))
    return replies


def _boundary(media_type: str | None) -> bytes:
    result = re.fullmatch(r"multipart/mixed; boundary=([^\s\";]+)", media_type or "")
    assert result, f"Content-Type {media_type}"
    return result[1].encode()


def _split(body: bytes, boundary: bytes) -> list[bytes]:
    delimiter = b"--" + boundary
    preamble, *parts, closing = body.split(delimiter)
    assert preamble == b"", "a preamble"
    assert closing.startswith(b"--"), "no closing delimiter"
    for part in parts:
        assert part.startswith(b"\r\n") and part.endswith(b"\r\n"), "a part is not between line ends"
    return [part[2:-2] for part in parts]


def _split_head(part: bytes) -> tuple[list[tuple[str, str]], bytes]:
    head, blank, body = part.partition(b"\r\n\r\n")
    assert blank, "a part without a blank line after its headers"
    lines = [line.partition(": ") for line in head.decode("ascii").split("\r\n")]
    return [(name, value) for name, _, value in lines], body


def _join_head(headers: list[tuple[str, str]], body: bytes) -> bytes:
    return "\r\n".join([*(f"{name}: {value}" for name, value in headers), "", ""]).encode() + body


def _read_http(part: bytes) -> Reply:
    mime, message = _split_head(part)
    assert ("Content-Type", "application/http") in mime
    assert ("Content-Transfer-Encoding", "binary") in mime
    status_line, _, rest = message.partition(b"\r\n")
    version, status, reason = status_line.decode("ascii").split(" ", 2)
    assert version == "HTTP/1.1"
    headers, body = _split_head(rest)
    # a body-less sub-response ends with one empty line more
    return Reply(int(status), reason, headers, body.removesuffix(b"\r\n"))

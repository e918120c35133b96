"""Reads recordings: cassettes of vcrpy, and the JSON of Azure's test proxy and of the .NET test framework before it."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import yaml

SUFFIXES = (".yaml", ".yml", ".json")
_SANITIZED = {"sanitized", "fake_token_value"}


class Unreadable(Exception):
    """The reason why a file is not a recording."""


class Number(str):
    """A number of JSON, as it is written there."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer; ``parsed`` when the recorder kept the JSON of a body and not its bytes."""

    headers: list[tuple[str, str]]
    body: bytes
    parsed: bool = False

    def header(self, name: str) -> str | None:
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else None


@dataclass(frozen=True, slots=True)
class Exchange:
    method: str
    url: str
    request: Message
    status: int
    reason: str | None  # not every recorder keeps it
    answer: Message

    @property
    def moment(self) -> datetime:
        """Return the time of the recording."""
        sent = self.request.header("x-ms-date") or self.request.header("Date") or self.answer.header("Date")
        return parsedate_to_datetime(sent) if sent else datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Recording:
    name: str
    exchanges: list[Exchange]


def find(paths: list[Path]) -> Iterator[Path]:
    """Yield every file that may be a recording, each content once: packages of several versions repeat most of
    theirs.
    """
    seen: set[bytes] = set()
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if not file.is_file() or file.suffix not in SUFFIXES:
                continue
            digest = hashlib.sha256(file.read_bytes()).digest()
            if digest not in seen:
                seen.add(digest)
                yield file


def read(path: Path) -> Recording:
    """Read a recording; raises Unreadable."""
    text = path.read_text("utf-8-sig")
    try:
        if path.suffix == ".json":
            exchanges = [_read_entry(entry) for entry in json.loads(text, **_RAW)["Entries"]]
        else:
            exchanges = [_read_interaction(item) for item in yaml.load(text, _Loader)["interactions"]]
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{path}: {str(error).splitlines()[0]}") from error
    return Recording(path.stem, exchanges)


# vcrpy


class _Loader(yaml.CSafeLoader):
    """Takes texts that Python 2 wrote."""


_Loader.add_constructor(
    "tag:yaml.org,2002:python/unicode", lambda loader, node: loader.construct_scalar(node)
)


def _read_interaction(item: dict[str, Any]) -> Exchange:
    request, response = item["request"], item["response"]
    return Exchange(
        method=request["method"],
        url=request["uri"],
        request=Message(_read_lists(request["headers"]), _to_bytes(request["body"])),
        status=response["status"]["code"],
        reason=response["status"]["message"],
        answer=Message(_read_lists(response["headers"]), _to_bytes(response["body"].get("string"))),
    )


def _read_lists(headers: dict[str, list[str] | str]) -> list[tuple[str, str]]:
    pairs = [(name, [values] if isinstance(values, str) else values) for name, values in headers.items()]
    return [(name, value) for name, values in pairs for value in values]


def _to_bytes(body: str | bytes | None) -> bytes:
    return body.encode() if isinstance(body, str) else body or b""


# the test proxy


_RAW: dict[str, Any] = {"parse_float": Number, "parse_int": Number, "parse_constant": Number}


def _read_entry(entry: dict[str, Any]) -> Exchange:
    return Exchange(
        method=entry["RequestMethod"],
        url=entry["RequestUri"],
        request=_read_side(entry["RequestHeaders"], entry["RequestBody"]),
        status=int(entry["StatusCode"]),
        reason=None,
        answer=_read_side(entry["ResponseHeaders"], entry["ResponseBody"]),
    )


def _read_side(fields: dict[str, list[str] | str], body: Any) -> Message:
    """Read a message; a JSON body is stored as JSON, text as a list of its lines, anything else as base64."""
    headers = [pair for pair in _read_lists(fields) if pair[1].lower() not in _SANITIZED]
    if isinstance(body, str) and not isinstance(body, Number):
        media_type = Message(headers, b"").header("Content-Type") or ""
        is_text = re.search(r"json|xml|text", media_type)
        return Message(headers, body.encode() if is_text else base64.b64decode(body))
    if isinstance(body, list) and all(type(line) is str for line in body):
        return Message(headers, "".join(body).encode())
    return Message(headers, b"" if body is None else write_json(body).encode(), body is not None)


def write_json(value: Any) -> str:
    """JSON without spaces, its numbers as they were read."""
    match value:
        case Number():
            return str(value)
        case dict():
            return "{" + ",".join(f"{_quote(name)}:{write_json(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ",".join(write_json(item) for item in value) + "]"
        case str():
            return _quote(value)
        case _:
            return json.dumps(value)


def rewrite_json(body: bytes) -> bytes:
    """Return a body as `write_json` would write it; one that is not JSON stays unchanged."""
    try:
        return write_json(json.loads(body, **_RAW)).encode()
    except ValueError:
        return body


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

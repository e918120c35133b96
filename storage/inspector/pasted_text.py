"""Classification of pasted text: a token, connection string, or request as HTTP text, URL or curl command."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import SplitResult, urlsplit

from storage.inspector import curl
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import Finding, finding

LIMIT: Final = 64 * 1024  # characters

_REQUEST_LINE = re.compile(r"([A-Za-z]{3,10}) +(?=/|https?://|\S+ +HTTP/)(\S+)(?: +HTTP/[0-9.]+)?")
_HEADER = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*:[ \t]*(.*)")
_SETTING = re.compile(
    r"(?:DefaultEndpointsProtocol|AccountName|AccountKey|TableEndpoint|UseDevelopmentStorage|"
    r"SharedAccessSignature|EndpointSuffix|(?:Blob|Queue|File|Table)(?:Secondary)?Endpoint)\s*=",
    re.IGNORECASE,
)
_QUOTE = re.compile("[\"'`]")
_SIGNATURE = re.compile(r"(?:^|[?&])(?:sig|sv|se|sp|spr|tn|si|ss|srt)=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PastedToken:
    query: str = field(repr=False)
    url: SplitResult | None = None


@dataclass(frozen=True, slots=True)
class PastedConnection:
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PastedRequest:
    method: str
    url: SplitResult
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    problems: tuple[Finding, ...] = ()


class UnreadableText(StrEnum):
    EMPTY = "empty"
    TOO_LONG = "too long"
    HEADERS_ONLY = "headers without a request line"
    NOTHING_KNOWN = "nothing known"


PastedText = PastedToken | PastedConnection | PastedRequest | UnreadableText


def recognize_text(text: str) -> PastedText:
    if len(text) > LIMIT:
        return UnreadableText.TOO_LONG
    text = text.replace("\r\n", "\n").strip().strip("\ufeff")
    if not text:
        return UnreadableText.EMPTY
    if curl.is_command(text):
        command = curl.read(text)
        return PastedRequest(command.method, read_url(command.url), command.headers, command.problems)
    first = text.split("\n", 1)[0].strip()
    line = _REQUEST_LINE.fullmatch(first)
    if line is not None:
        return _of_http(line[1], line[2], text.split("\n")[1:])
    return _of_line(text, first)


def _of_line(text: str, first: str) -> PastedText:
    setting = _SETTING.search(text)
    if setting is not None and not text.lower().startswith(("http://", "https://")):
        # from a setting, document or program: up to the closing quote, in one line
        connection = _QUOTE.split(text[setting.start() :], maxsplit=1)[0]
        return PastedConnection("".join(line.strip() for line in connection.split("\n")))
    bare = text.strip("\"'` \n\t<>,;")
    if bare.lower().startswith(("http://", "https://")):
        url = read_url(bare)
        return PastedToken(url.query, url) if "sig=" in url.query else PastedRequest("GET", url, ())
    if _SIGNATURE.search(bare):
        return PastedToken(bare.partition("?")[2] if "?" in bare.split("=")[0] else bare)
    return UnreadableText.HEADERS_ONLY if _HEADER.fullmatch(first) else UnreadableText.NOTHING_KNOWN


def read_url(text: str) -> SplitResult:
    """Split a URL without decoding, also one that Python's parser refuses."""
    text = text.partition("#")[0]
    try:
        return urlsplit(text)
    except ValueError:  # starts like an IPv6 address but is not
        path, _, query = text.partition("?")
        return SplitResult("", "", path, query, "")


def _of_http(method: str, target: str, lines: list[str]) -> PastedRequest:
    headers: list[tuple[str, str]] = []
    problems: list[Finding] = []
    for number, line in enumerate(lines, 2):
        if not line.strip():
            break  # the body follows
        if line[0] in " \t" and headers:
            # a continuation line, as old clients send them
            headers[-1] = (headers[-1][0], f"{headers[-1][1]} {line.strip()}")
            continue
        header = _HEADER.fullmatch(line.strip())
        if header is None:
            problems.append(finding(Mistake.LINE_UNREADABLE, line=str(number)))
        else:
            headers.append((header[1], header[2].strip()))
    path, _, query = target.partition("?")
    if "://" in path:
        url = read_url(target)
    else:
        host = next((value for name, value in headers if name.lower() == "host"), "")
        url = SplitResult("", host, path, query, "")
    return PastedRequest(method.upper(), url, tuple(headers), tuple(problems))

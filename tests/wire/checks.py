"""Requirements of replies: the rules of every reply, and one check per key of a case's `response`."""

import json
import re
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit
from xml.etree import ElementTree

from . import atom, batches
from .client import Outgoing, Reply

ANY = "<any>"
# not compared with a foreign server: its data and its errors count
DRESS = {"reason", "headers", "matching", "order", "form", "contains", "body_matching"}
ETAG = re.compile(r"W/\"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{0,6}[1-9])?Z'\"")
TRAILER = re.compile(r"\nRequestId:(\S+)\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$")
JSON_TYPE = re.compile(r"application/json;odata=(no|minimal|full)metadata;streaming=true;charset=utf-8")
COSMOS_TYPE = re.compile(r"application/json(;odata=(no|minimal|full)metadata)?|multipart/mixed; boundary=.*")
COSMOS_TRAILER = re.compile(r"(?:\r\nActivityId: [^\n]+)?\n{1,2}RequestID:\S+\n$")
STORAGE_HEADERS = ("x-ms-version", "x-ms-client-request-id", "x-ms-error-code", "X-Content-Type-Options")
METADATA = "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}"


# every reply


def check_always(reply: Reply, request: Outgoing, expected: dict[str, Any], *, foreign: bool) -> None:
    for name in ("Server", "Date", "x-ms-request-id"):
        assert reply.header(name), f"no {name}"
    assert parsedate_to_datetime(reply.header("Date") or "")
    if foreign:
        return
    _check_version(reply, request)
    _check_framing(reply)
    assert reply.header("x-ms-client-request-id") == request.header("x-ms-client-request-id"), "no echo"
    if request.method == "HEAD":
        assert reply.header("x-ms-error-code")
    elif reply.status >= 400:
        _check_error(reply)
        assert reply.header("X-Content-Type-Options") == "nosniff", "an error that may be taken for a page"
        if "json" in (request.header("Accept") or "") and "form" not in expected:
            _form(reply, "json")
    else:
        _check_success(reply, request)


def check_always_cosmos(reply: Reply) -> None:
    for name in ("Server", "Date", "x-ms-request-id"):
        assert reply.header(name), f"no {name}"
    for name in (*STORAGE_HEADERS, "Cache-Control"):
        assert reply.header(name) is None, f"{name}, which only storage accounts send"
    media_type = reply.header("Content-Type") or ""
    assert COSMOS_TYPE.fullmatch(media_type), f"another Content-Type: {media_type}"
    if reply.status >= 400:
        assert reply.text.endswith("}\r\n"), "no line end after an error"
        _check_cosmos_error(reply)
    elif media_type.startswith("multipart/"):
        for part in batches.read(reply):
            if part.status >= 400:
                _check_cosmos_error(part)
            else:
                check_one_line(part)
    elif reply.body:
        check_one_line(reply)
        _check_cosmos_tags(reply)


def _check_cosmos_error(reply: Reply) -> None:
    error = reply.json()["odata.error"]
    assert error["message"]["lang"] == "en-us"
    assert COSMOS_TRAILER.search(error["message"]["value"]), f"no RequestID: {error}"


def _check_cosmos_tags(reply: Reply) -> None:
    for entity in entities_of(reply):
        tags = {reply.header("ETag"), entity.get("odata.etag")} - {None}
        if isinstance(moment := entity.get("Timestamp"), str):
            assert list(entity)[-1] == "Timestamp" or "odata.metadata" in entity, "Timestamp is not the last"
            assert re.search(r"\.\d{7}Z$", moment), f"Timestamp without all digits: {moment}"
            tags.add(f"W/\"datetime'{quote(moment, safe='')}'\"")
        assert len(tags) <= 1, f"different tags: {tags}"


def _check_version(reply: Reply, request: Outgoing) -> None:
    options = dict(parse_qsl(urlsplit(request.target).query))
    # only a shared access signature makes it count
    asked = options.get("api-version") if "sv" in options else None
    sent = asked or request.header("x-ms-version")
    if sent is None:
        assert reply.status >= 400 or reply.header("x-ms-version"), "no x-ms-version"
    elif reply.header("x-ms-error-code") not in ("InvalidHeaderValue", "InvalidQueryParameterValue"):
        assert reply.header("x-ms-version") == sent, "x-ms-version is not echoed"


def _check_framing(reply: Reply) -> None:
    if reply.status == 204:
        assert reply.body == b""
        assert reply.header("Content-Type") is None, "204 with a Content-Type"
        assert reply.header("Content-Length") in ("0", None), "204 with a length"
    else:
        framed = reply.header("Content-Length") is not None or reply.header("Transfer-Encoding") == "chunked"
        assert framed, "neither Content-Length nor chunked"


def _check_error(reply: Reply) -> None:
    code, message = error_of(reply)
    assert reply.header("x-ms-error-code") == code, "x-ms-error-code is not the code of the body"
    trailer = TRAILER.search(message)
    assert trailer, f"the message ends without RequestId and Time: {message!r}"
    assert trailer[1] == reply.header("x-ms-request-id"), "another RequestId than x-ms-request-id"


def _check_success(reply: Reply, request: Outgoing) -> None:
    assert reply.header("x-ms-error-code") is None
    if "comp=" not in request.target:
        assert reply.header("Cache-Control") == "no-cache"
        assert reply.header("X-Content-Type-Options") == "nosniff"
    if (reply.header("Content-Type") or "").startswith("multipart/"):
        for part in batches.read(reply):
            _check_part(part)
    check_one_line(reply)
    check_entity_tags(reply)


def check_one_line(reply: Reply) -> None:
    """JSON is one line: older .NET clients read a part of a batch by one ReadLine."""
    if (reply.header("Content-Type") or "").startswith("application/json"):
        assert b"\n" not in reply.body.rstrip(b"\r\n"), "JSON with a line feed"


def _check_part(part: Reply) -> None:
    assert part.reason, "no reason phrase"
    check_one_line(part)
    if part.status >= 400:
        assert TRAILER.search(error_of(part)[1]), "the message ends without RequestId and Time"
    else:
        check_entity_tags(part)


def check_entity_tags(reply: Reply) -> None:
    """ETag, odata.etag and Timestamp of an entity agree to the last digit."""
    etag = reply.header("ETag")
    assert etag is None or ETAG.fullmatch(etag), f"malformed ETag {etag}"
    if (reply.header("Content-Type") or "").startswith(atom.MEDIA_TYPE):
        atom.check_always(reply)
    if not (reply.header("Content-Type") or "").startswith("application/json"):
        return
    assert JSON_TYPE.fullmatch(reply.header("Content-Type") or ""), "another Content-Type"
    for entity in entities_of(reply):
        tags = {etag, entity.get("odata.etag")} - {None}
        if isinstance(moment := entity.get("Timestamp"), str):
            tags.add(f"W/\"datetime'{quote(moment, safe='')}'\"")
        assert len(tags) <= 1, f"different tags: {tags}"


def entities_of(reply: Reply) -> list[dict[str, Any]]:
    """Return the items of a list, or the single object."""
    body = reply.json()
    return body["value"] if isinstance(body.get("value"), list) else [body]


# errors


def error_of(reply: Reply) -> tuple[str, str]:
    """Code and whole message; fails when the body is none of the three forms."""
    form = form_of(reply)
    if form == "json":
        error = reply.json()
        assert error.keys() == {"odata.error"}, "more than odata.error"
        assert error["odata.error"].keys() == {"code", "message"}, "more than code and message"
        assert error["odata.error"]["message"]["lang"] == "en-US"
        return error["odata.error"]["code"], error["odata.error"]["message"]["value"]
    root = ElementTree.fromstring(reply.text)
    return root.findtext(f"{METADATA}code") or "", root.findtext(f"{METADATA}message") or ""


def form_of(reply: Reply) -> str:
    """`json`, or the two XML forms by their root element: `error` and `m:error`."""
    media_type = reply.header("Content-Type") or ""
    if media_type.startswith("application/json"):
        return "json"
    assert media_type.startswith("application/xml"), f"an error as {media_type!r}"
    root = re.search(r"<((?:m:)?error)\b", reply.text)
    assert root, "an error without the root element"
    return root[1]


def foreign_error_of(reply: Reply) -> tuple[str, str]:
    if (reply.header("Content-Type") or "").startswith("application/json"):
        error = reply.json()["odata.error"]
        return error["code"], error["message"]["value"]
    code = re.search(r"<(?:m:)?code>(.*?)</", reply.text, re.IGNORECASE)
    message = re.search(r"<(?:m:)?message[^>]*>(.*?)</", reply.text, re.IGNORECASE | re.DOTALL)
    return code[1] if code else "", message[1] if message else ""


def _sentence(reply: Reply) -> str:
    return COSMOS_TRAILER.sub("", foreign_error_of(reply)[1]).partition("\nRequestId:")[0]


# expectations of a case


def check(reply: Reply, expected: dict[str, Any], *, foreign: bool = False) -> None:
    for name, value in expected.items():
        if name != "capture" and not (foreign and name in DRESS):
            CHECKS[name](reply, value)


def _status(reply: Reply, expected: Any) -> None:
    allowed = expected if isinstance(expected, list) else [expected]
    assert reply.status in [int(status) for status in allowed], f"status {reply.status}, not {expected}"


def _reason(reply: Reply, expected: str) -> None:
    assert reply.reason == expected, f"reason phrase {reply.reason!r}, not {expected!r}"


def _error(reply: Reply, expected: Any) -> None:
    allowed = expected if isinstance(expected, list) else [expected]
    code = foreign_error_of(reply)[0]
    assert code in allowed, f"error {code}, not {expected}"


def _message(reply: Reply, expected: str) -> None:
    assert _sentence(reply) == expected, f"message {_sentence(reply)!r}, not {expected!r}"


def _message_start(reply: Reply, expected: str) -> None:
    assert _sentence(reply).startswith(expected), f"message {_sentence(reply)!r} does not start so"


def _message_contains(reply: Reply, expected: str) -> None:
    assert expected in _sentence(reply), f"message {_sentence(reply)!r} without {expected!r}"


def _form(reply: Reply, expected: Any) -> None:
    allowed = expected if isinstance(expected, list) else [expected]
    assert form_of(reply) in allowed, f"an error in the form {form_of(reply)}"


def _headers(reply: Reply, expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        result = reply.header(name)
        if isinstance(value, bool):
            assert (result is not None) == value, f"{name} is {result!r}"
        else:
            assert result == value, f"{name} is {result!r}, not {value!r}"


def _matching(reply: Reply, expected: dict[str, str]) -> None:
    for name, pattern in expected.items():
        assert re.fullmatch(pattern, reply.header(name) or ""), f"{name} is {reply.header(name)!r}"


def _json(reply: Reply, expected: Any) -> None:
    _compare(reply.json(), _read(expected), exactly=True)


def _subset(reply: Reply, expected: Any) -> None:
    _compare(reply.json(), _read(expected), exactly=False)


def _entity(reply: Reply, expected: Any) -> None:
    """Check the custom properties with their annotations, all of them and no others."""
    system = {"PartitionKey", "RowKey", "Timestamp", "Timestamp@odata.type"}
    body = reply.json()
    results = {k: v for k, v in body.items() if k not in system and not k.startswith("odata.")}
    _compare(results, _read(expected), exactly=True)


def _read(expected: Any) -> Any:
    return json.loads(expected) if isinstance(expected, str) else expected


def _compare(actual: Any, expected: Any, *, exactly: bool, at: str = "body") -> None:
    if expected == ANY:
        return
    assert type(actual) is type(expected), f"{at} is {actual!r}, not {expected!r}"
    if isinstance(expected, dict):
        missing, surplus = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        assert not missing, f"{at} lacks {missing}"
        assert not surplus or not exactly, f"{at} has {surplus}"
        for name, value in expected.items():
            _compare(actual[name], value, exactly=exactly, at=f"{at}.{name}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), f"{at} has {len(actual)} items, not {len(expected)}"
        for index, value in enumerate(expected):
            _compare(actual[index], value, exactly=exactly, at=f"{at}[{index}]")
    else:
        # by text, because 0.0 and -0.0 are equal
        assert repr(actual) == repr(expected), f"{at} is {actual!r}, not {expected!r}"


def _lacks_members(reply: Reply, expected: list[str]) -> None:
    for entity in entities_of(reply):
        assert not entity.keys() & set(expected), f"members {entity.keys() & set(expected)}"


def _order(reply: Reply, expected: list[str]) -> None:
    """Check that the members come in this order; others may stand between them."""
    members = list(entities_of(reply)[0])
    assert [name for name in members if name in expected] == expected, f"order {members}"


def _rows(reply: Reply, expected: list[str]) -> None:
    results = [entity["RowKey"] for entity in reply.json()["value"]]
    assert results == expected, f"rows {results}, not {expected}"


def _keys(reply: Reply, expected: list[list[str]]) -> None:
    results = [[entity["PartitionKey"], entity["RowKey"]] for entity in reply.json()["value"]]
    assert results == expected, f"keys {results}, not {expected}"


def _bounds(reply: Reply, expected: list[str]) -> None:
    """Check the first and the last key of a list, each as one text."""
    results = [entity["PartitionKey"] + entity["RowKey"] for entity in reply.json()["value"]]
    assert [results[0], results[-1]] == expected, f"keys {results}, not {expected}"


def _tables(reply: Reply, expected: list[str]) -> None:
    results = [table["TableName"] for table in reply.json()["value"]]
    assert results == expected, f"tables {results}, not {expected}"


def _count(reply: Reply, expected: int) -> None:
    assert len(reply.json()["value"]) == expected, f"{len(reply.json()['value'])} rows"


def _text(reply: Reply, expected: str) -> None:
    assert reply.text == expected


def _contains(reply: Reply, expected: list[str]) -> None:
    for text in expected:
        assert text in reply.text, f"the body lacks {text!r}"


def _lacks(reply: Reply, expected: list[str]) -> None:
    for text in expected:
        assert text not in reply.text, f"the body has {text!r}"


def _body_matching(reply: Reply, expected: str) -> None:
    assert re.search(expected, reply.text, re.DOTALL), f"the body does not match {expected!r}"


def _continued(reply: Reply, expected: bool) -> None:
    assert reply.continued == expected, "100 Continue" if reply.continued else "no 100 Continue"


def _bodiless(reply: Reply, expected: bool) -> None:
    """Check whether the reply has a body; an answer to HEAD has its error code in the headers only."""
    assert (reply.body == b"") == expected


def _bare(reply: Reply, expected: bool) -> None:
    """Mark a reply of the HTTP parser, below the protocol, for which the rules of every reply do not hold."""


def _closes(reply: Reply, expected: bool) -> None:
    assert reply.closes == expected


def _within(reply: Reply, expected: float) -> None:
    assert reply.seconds < expected, f"answered after {reply.seconds:.1f} s"


def _parts(reply: Reply, expected: list[dict[str, Any]]) -> None:
    """Check the sub-responses of the one change set, or those outside of one."""
    parts = batches.read(reply)
    assert len(parts) == len(expected), f"{len(parts)} parts, not {len(expected)}"
    for index, (part, conditions) in enumerate(zip(parts, expected, strict=True)):
        try:
            check(part, conditions)
        except AssertionError as failure:
            raise AssertionError(f"part {index}: {failure}") from failure


def _all_parts(reply: Reply, expected: dict[str, Any]) -> None:
    """Check for so many sub-responses, all alike: { count = 100, status = 204 }."""
    wanted = dict(expected)
    _parts(reply, [wanted] * int(wanted.pop("count")))


def _change_sets(reply: Reply, expected: int) -> None:
    assert reply.text.count("--changesetresponse_") == 0 or expected == 1, "a change set"
    assert expected == 0 or "--changesetresponse_" in reply.text, "no change set"


CHECKS: dict[str, Callable[[Reply, Any], None]] = {
    **{check.__name__[1:]: check for check in (
        _status, _reason, _error, _message, _message_start, _message_contains, _form, _headers, _matching, _json,
        _subset, _entity, _lacks_members, _order, _rows, _keys, _bounds, _tables, _count, _text, _contains, _lacks,
        _body_matching, _continued, _closes, _bodiless, _bare, _parts, _all_parts, _change_sets, _within,
    )},
    "entry": atom.check_entry,
    "feed": atom.check_feed,
}  # fmt: skip

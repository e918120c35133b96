"""Hypothesis strategies for the management API and the console, made from a running server.

The API's operations come from its OpenAPI document; pages and forms are found by following the links of the
console.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit

from hypothesis import strategies as st

from tests.faults.connection import Request
from tests.tools.fuzz import values
from tests.tools.fuzz.protocol import TABLE, escaped, filters, mutated, texts

FUZZED = "fuzzed"  # an account that may break
MOST_PAGES = 120
# a stream has no end; these end the session, or what others need
LEFT_OUT = re.compile(
    r"devstoreaccount1|/undo/|live|stream|logout|login|password|profile|users|sessions|language|/delete/$|freeze|/export/|\?token="
)

# the management API

VALUES = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 1.5, 1e300, "", " ", "x", "fuzz", "fuzzed", "r", "raud",
    "now", "oldest", "1h",
    "2d", "-1h", "2026-11-30T18:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-13-45",
    "key1", "*", "a" * 300,
    "https://example.com", "::1", [], [None], ["x"], ["x"] * 200, [[]], {}, {"x": 1}, {"x": {"y": []}},
    "\x00", "\ud800",
]  # fmt: skip


@dataclass(frozen=True)
class ApiOperation:
    method: str
    path: str
    parameters: Sequence[str]
    members: Sequence[str]


def read_operations(document: Mapping[str, Any]) -> list[ApiOperation]:
    """Return all operations except those that delete or freeze an account, with the names of their members."""

    def members(schema: Mapping[str, Any]) -> list[str]:
        if "$ref" in schema:
            return members(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        parts = [it for word in ("allOf", "oneOf", "anyOf") for it in schema.get(word, ())]
        return [*schema.get("properties", ()), *(name for part in parts for name in members(part))]

    results = []
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            if (
                LEFT_OUT.search(path)
                or (method == "delete" and path.endswith("/{account}"))
                or method == "parameters"
            ):
                continue
            content = described.get("requestBody", {}).get("content", {}).get("application/json", {})
            names = [it["name"] for it in described.get("parameters", ()) if it["in"] == "query"]
            results.append(ApiOperation(method.upper(), path, names, members(content.get("schema", {}))))
    return results


def wild_calls(operations: Sequence[ApiOperation], token: str) -> st.SearchStrategy[Request]:
    @st.composite
    def call(draw: st.DrawFn) -> Request:
        operation = draw(st.sampled_from(operations))

        def fill(match: re.Match[str]) -> str:
            usual = {"account": FUZZED, "table": TABLE}.get(match[1], "x")
            is_usual = match[1] == "account" or draw(st.integers(0, 3))
            return quote((usual if is_usual else draw(texts)).encode("utf-8", "surrogatepass"), safe="")

        path = re.sub(r"\{(\w+)\}", fill, operation.path).encode()
        names = draw(st.lists(st.sampled_from([*operation.parameters, "limit", "cursor", "x"]), max_size=3))
        options = [b"%b=%b" % (escaped(name), escaped(str(draw(st.sampled_from(VALUES))))) for name in names]
        headers = [(b"Authorization", b"Bearer " + token.encode())]
        body = None
        if operation.method not in ("GET", "DELETE"):
            chosen = draw(st.lists(st.sampled_from([*operation.members, "x"]), max_size=5))
            content = {name: draw(st.one_of(st.sampled_from(VALUES), texts)) for name in chosen}
            body = draw(st.sampled_from([json.dumps(content).encode()] * 5 + values.ODD_BODIES[:20]))
            if draw(st.integers(0, 5)) == 0:
                body = draw(mutated(body))
            kinds = [b"application/json"] * 8 + [b"text/plain", b"application/json; charset=x", b""]
            headers.append((b"Content-Type", draw(st.sampled_from(kinds))))
            if draw(st.integers(0, 5)) == 0:
                headers.append((b"Idempotency-Key", draw(st.sampled_from([b"k", b"", b"x" * 300, b"\xff"]))))
        if draw(st.integers(0, 9)) == 0:
            headers.append((b"If-Match", draw(st.sampled_from(values.HEADER_VALUES[b"If-Match"]))))
        target = path + (b"?" + b"&".join(options) if options else b"")
        return Request(operation.method.encode(), target, headers, body, signed=False)

    return call()


# the console


@dataclass(frozen=True)
class Form:
    """A form of a page, with the values that it shows."""

    method: str
    address: str
    fields: Mapping[str, str]


class _Page(HTMLParser):
    """The links and forms of a page."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[Form] = []
        self._address = address
        self._fields: dict[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        for name in ("href", "hx-get"):
            if name in given:
                self.links.append(urljoin(self._address, given[name]))
        for name in ("hx-post", "formaction"):
            if name in given:
                self.forms.append(Form("POST", urljoin(self._address, given[name]), {}))
        if tag == "form":
            self._fields = {}
            address = urljoin(self._address, given.get("action") or given.get("hx-post") or "")
            self.forms.append(Form(given.get("method", "get").upper(), address, self._fields))
        elif (
            tag in ("input", "select", "textarea", "button")
            and self._fields is not None
            and given.get("name")
        ):
            self._fields.setdefault(given["name"], given.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._fields = None


def crawl(get: Callable[[str], str], start: Sequence[str]) -> tuple[list[str], list[Form]]:
    """Return addresses of pages and the forms on them; one of several that differ in numbers only."""
    pages: dict[str, str] = {}
    forms: dict[tuple[str, ...], Form] = {}
    waiting = list(start)
    while waiting and len(pages) < MOST_PAGES:
        address = waiting.pop(0)
        shape = re.sub(r"\d+", "0", urlsplit(address).path)
        if (
            shape in pages
            or not shape.startswith("/ui/")
            or LEFT_OUT.search(address)
            or "/static/" in address
        ):
            continue
        pages[shape] = address
        page = _Page(address)
        page.feed(get(address))
        waiting += [
            urlsplit(link)._replace(scheme="", netloc="", fragment="").geturl() for link in page.links
        ]
        for form in page.forms:
            path = re.sub(r"\d+", "0", urlsplit(form.address).path)
            if not LEFT_OUT.search(form.address) and path.startswith(f"/ui/a/{FUZZED}/"):
                forms.setdefault((form.method, path, *sorted(form.fields)), form)
    return list(pages.values()), list(forms.values())


odd_values = st.one_of(texts, filters, st.sampled_from([str(it) for it in VALUES]))


def written(pairs: Sequence[tuple[str, str]]) -> bytes:
    return urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in pairs]).encode()


def _change(draw: st.DrawFn, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Change some fields to odd values, leave some out, and repeat others."""
    for name, value in pairs:
        match draw(st.integers(0, 5)):
            case 0 | 1 | 2:
                yield name, draw(odd_values)
            case 3 if name != "csrfmiddlewaretoken":
                continue
            case 4:
                yield name, value
                yield name, draw(odd_values)
            case _:
                yield name, value


def wild_pages(pages: Sequence[str], cookies: bytes) -> st.SearchStrategy[Request]:
    @st.composite
    def page(draw: st.DrawFn) -> Request:
        parts = urlsplit(draw(st.sampled_from(pages)))
        given = [*parse_qsl(parts.query, keep_blank_values=True)]
        more = st.sampled_from(["f", "top", "select", "sort", "at", "page", "q", "pk", "rk", "columns", "x"])
        given += [(name, "") for name in draw(st.lists(more, max_size=3))]
        path = parts.path.encode()
        if draw(st.integers(0, 4)) == 0:
            path = path.replace(TABLE.encode(), escaped(draw(texts)).replace(b"/", b"%2F")) or b"/ui/"
        headers = [(b"Cookie", cookies)]
        if draw(st.booleans()):
            headers.append((b"HX-Request", b"true"))
        return Request(b"GET", path + b"?" + written(list(_change(draw, given))), headers, signed=False)

    return page()


def wild_forms(forms: Sequence[Form], cookies: bytes, csrf: str) -> st.SearchStrategy[Request]:
    posted = [it for it in forms if it.method == "POST"]

    @st.composite
    def form(draw: st.DrawFn) -> Request:
        chosen = draw(st.sampled_from(posted))
        extra = draw(st.lists(st.sampled_from(["name", "value", "key", "f", "table", "x"]), max_size=2))
        fields = {**chosen.fields, **dict.fromkeys(extra, "")}
        fields.pop("csrfmiddlewaretoken", None)
        body = written([("csrfmiddlewaretoken", csrf), *_change(draw, list(fields.items()))])
        if draw(st.integers(0, 9)) == 0:
            body = draw(mutated(body))
        kinds = [b"application/x-www-form-urlencoded"] * 8 + [
            b"multipart/form-data",
            b"multipart/form-data; boundary=x",
            b"x",
        ]
        address = urlsplit(chosen.address)
        headers = [
            (b"Cookie", cookies),
            (b"Content-Type", draw(st.sampled_from(kinds))),
            (b"X-CSRFToken", csrf.encode()),
        ]
        if draw(st.booleans()):
            headers.append((b"HX-Request", b"true"))
        target = address.path.encode() + (b"?" + address.query.encode() if address.query else b"")
        return Request(b"POST", target, headers, body, signed=False)

    return form()

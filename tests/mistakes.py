"""Common mistakes in signing, each made on a good token or request by a signer independent of the server's.

Keys of the account: FIRST and SECOND; OLD was its first; OTHER is a key of the account `other`.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit

from storage.inspector import Mistake
from tests.wire import tokens

ACCOUNT = "acme"
FIRST, SECOND, OLD, OTHER, STRANGE = (letter * 64 for letter in (b"1", b"2", b"3", b"4", b"5"))
DEVELOPMENT = b"d" * 64


def signature(text, key=FIRST):
    return base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()


# tokens: a dictionary of fields in, the query string out


def write(fields, sig):
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in {**fields, "sig": sig}.items())


def text_of(fields, account=ACCOUNT):
    return tokens.string_to_sign(fields, account)


def good(fields, key=FIRST):
    return write(fields, signature(text_of(fields), key))


def fingerprint_of(fields):
    """Return the fingerprint of a token."""
    return hashlib.sha256(signature(text_of(fields)).encode()).hexdigest()


def signing(change):
    """Signs what ``change`` makes of the right text."""
    return lambda fields: write(fields, signature(change(text_of(fields), fields)))


def having(**changed):
    """Has other fields since it was signed; None: has them no more."""

    def make(fields):
        now = {name: value for name, value in {**fields, **changed}.items() if value is not None}
        return write(now, signature(text_of(fields)))

    return make


def without(fields, name):
    return {other: value for other, value in fields.items() if other != name}


def keyed(key):
    return lambda fields: good(fields, key)


def with_plus(fields):
    """Return a token whose signature contains a plus sign and a slash, which a query string must encode."""
    for number in range(1000):
        tried = (
            {**fields, "si": f"{fields.get('si', '')}{number}"}
            if "tn" in fields
            else {**fields, "sp": "r" * (number + 1)}
        )
        if {"+", "/"} <= set(signature(text_of(tried))):
            return tried
    raise AssertionError


def plus_as_space(fields):
    return good(with_plus(fields)).replace("%2B", "+")


def url_safe(fields):
    fields = with_plus(fields)
    return write(fields, signature(text_of(fields)).replace("+", "-").replace("/", "_"))


def swap(*names):
    def change(text, fields):
        order = list(tokens.ACCOUNT_FIELDS if "ss" in fields else tokens.TABLE_FIELDS)
        first, second = (order.index(name) + ("ss" in fields) for name in names)
        lines = text.split("\n")
        lines[first], lines[second] = lines[second], lines[first]
        return "\n".join(lines)

    return change


def encoded(text, fields):
    return "\n".join(quote(line, safe="/") for line in text.split("\n"))


TABLE_TOKEN = {
    "sv": "2019-02-02",
    "tn": "People",
    "sp": "ra",
    "st": "2026-01-01T00:00:00Z",
    "se": "2099-01-01T00:00:00Z",
    "sip": "192.0.2.1",
    "spr": "https,http",
    "spk": "a",
    "srk": "1",
    "epk": "b",
    "erk": "2",
}
ACCOUNT_TOKEN = {
    "sv": "2019-02-02",
    "ss": "bt",
    "srt": "sco",
    "sp": "rwdlacu",
    "st": "2026-01-01T00:00:00Z",
    "se": "2099-01-01T00:00:00Z",
    "sip": "192.0.2.1",
    "spr": "https,http",
}

# mistake, who makes it
OF_TOKENS = [
    (Mistake.PLUS_AS_SPACE, plus_as_space),
    (Mistake.ENCODED_TWICE, lambda fields: write(fields, quote(signature(text_of(fields)), safe=""))),
    (Mistake.URL_SAFE_BASE64, url_safe),
    (Mistake.PADDING, lambda fields: write(fields, signature(text_of(fields)).rstrip("="))),
    (Mistake.HEXADECIMAL, lambda fields: write(fields, base64.b64decode(signature(text_of(fields))).hex())),
    (Mistake.RETIRED_KEY, keyed(OLD)),
    (Mistake.OTHER_ACCOUNT_KEY, keyed(OTHER)),
    (Mistake.DEVELOPMENT_KEY, keyed(DEVELOPMENT)),
    (Mistake.KEY_NOT_DECODED, keyed(base64.b64encode(SECOND))),
    (Mistake.UNKNOWN_KEY, keyed(STRANGE)),
    (Mistake.OTHER_ACCOUNT, signing(lambda text, fields: text_of(fields, "other"))),
    (Mistake.OTHER_ACCOUNT, signing(lambda text, fields: text_of(fields, f"{ACCOUNT}-secondary"))),
    (Mistake.UNKNOWN_KEY, having(sp="r")),
    (Mistake.UNKNOWN_KEY, signing(swap("st", "se"))),
    (Mistake.SIGNED_ENCODED, signing(encoded)),
    (Mistake.NEWLINE, signing(lambda text, fields: text.replace("\n", "\r\n"))),
    (Mistake.ESCAPED_NEWLINE, signing(lambda text, fields: text.replace("\n", "\\n"))),
]
OF_TABLE_TOKENS = [
    *OF_TOKENS,
    (Mistake.ACCOUNT_DOUBLED, signing(lambda text, fields: text.replace("/acme/", "/acme/acme/"))),
    (Mistake.TABLE_CASE, signing(lambda text, fields: text.replace("/people", "/People"))),
    (Mistake.FINAL_NEWLINE, signing(lambda text, fields: text + "\n")),
]
OF_ACCOUNT_TOKENS = [
    *OF_TOKENS,
    (Mistake.FINAL_NEWLINE, signing(lambda text, fields: text.rstrip("\n"))),
]


# requests


@dataclass(frozen=True)
class Request:
    """As a client sends it, before it is signed; header names in their usual case."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def header(self, name):
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), "")

    def having(self, **headers):
        """Return the request with other headers; None removes one."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        kept = {
            name: value for name, value in self.headers.items() if name.lower() not in map(str.lower, names)
        }
        return replace(
            self, headers=kept | {name: value for name, value in names.items() if value is not None}
        )

    @property
    def path(self):
        return urlsplit(self.url).path

    def as_http(self):
        parts = urlsplit(self.url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        lines = [f"{self.method} {target} HTTP/1.1", f"Host: {parts.netloc}"]
        return "\r\n".join(
            [*lines, *(f"{name}: {value}" for name, value in self.headers.items()), "", '{"a": 1}']
        )

    def as_curl(self):
        headers = " \\\n  ".join(f"-H '{name}: {value}'" for name, value in self.headers.items())
        escaped = self.url.replace("'", "'\\''")
        return f"curl -sS -X {self.method} '{escaped}' \\\n  {headers}"


def resource_of(request, path=None):
    query = urlsplit(request.url).query
    comp = next((part for part in query.split("&") if part.startswith("comp=")), "")
    return f"/{ACCOUNT}{path or request.path}" + (f"?{comp}" if comp else "")


def full(request, resource=None, newline="\n"):
    date = request.header("x-ms-date") or request.header("Date")
    head = (request.method, request.header("Content-MD5"), request.header("Content-Type"), date)
    return newline.join((*head, resource or resource_of(request)))


def lite(request, resource=None, newline="\n"):
    date = request.header("x-ms-date") or request.header("Date")
    return newline.join((date, resource or resource_of(request)))


def authorized(request, text, key=FIRST, scheme="SharedKey", account=ACCOUNT):
    return request.having(Authorization=f"{scheme} {account}:{signature(text, key)}")


def hexadecimal(request):
    start, _, mac = request.header("Authorization").partition(":")
    return request.having(Authorization=f"{start}:{base64.b64decode(mac).hex()}")


def of_full(make):
    return lambda request: authorized(request, make(request))


def of_lite(make):
    return lambda request: authorized(request, make(request), scheme="SharedKeyLite")


def of_both(make):
    """Return a mistake in the resource, in both schemes."""
    return [
        of_full(lambda request: full(request, make(request))),
        of_lite(lambda request: lite(request, make(request))),
    ]


def once(request):
    return resource_of(request, request.path.removeprefix(f"/{ACCOUNT}"))


def twice(request):
    return f"/{ACCOUNT}{resource_of(request)}"


def as_of(account):
    return lambda request: resource_of(request).replace(f"/{ACCOUNT}/", f"/{account}/", 1)


def then(make, **headers):
    """Signed, and then something on the way changed headers."""
    return lambda request: make(request).having(**headers)


def signed_with(**headers):
    """Signed as if it had other headers."""
    return of_full(lambda request: full(request.having(**headers)))


def other_method(request):
    return full(replace(request, method="PATCH" if request.method == "MERGE" else "MERGE"))


def dated(delta):
    def make(request):
        moment = datetime.now(UTC) + delta
        late = request.having(x_ms_date=f"{moment:%a, %d %b %Y %H:%M:%S GMT}")
        return authorized(late, full(late))

    return make


sign = of_full(full)
sign_lite = of_lite(lite)

JSON = "application/json"
OF_REQUESTS = [
    (Mistake.RETIRED_KEY, lambda request: authorized(request, full(request), OLD)),
    (Mistake.OTHER_ACCOUNT_KEY, lambda request: authorized(request, full(request), OTHER)),
    (Mistake.DEVELOPMENT_KEY, lambda request: authorized(request, full(request), DEVELOPMENT)),
    (Mistake.KEY_NOT_DECODED, lambda request: authorized(request, full(request), base64.b64encode(FIRST))),
    (Mistake.UNKNOWN_KEY, lambda request: authorized(request, full(request), STRANGE)),
    (Mistake.HEXADECIMAL, lambda request: hexadecimal(authorized(request, full(request)))),
    (Mistake.OTHER_SCHEME, of_full(lite)),
    (Mistake.OTHER_SCHEME, of_lite(full)),
    *((Mistake.ACCOUNT_NOT_DOUBLED, make) for make in of_both(once)),
    *((Mistake.ACCOUNT_DOUBLED, make) for make in of_both(twice)),
    *((Mistake.OTHER_ACCOUNT, make) for make in of_both(as_of(f"{ACCOUNT}-secondary"))),
    *((Mistake.OTHER_ACCOUNT, make) for make in of_both(as_of("other"))),
    (Mistake.NO_DATE_SIGNED, signed_with(x_ms_date=None)),
    (Mistake.UNKNOWN_KEY, of_full(other_method)),
    (Mistake.CONTENT_TYPE_ADDED, then(signed_with(Content_Type=None), Content_Type="text/plain")),
    (Mistake.CONTENT_TYPE_OTHER, then(signed_with(Content_Type=JSON), Content_Type=f"{JSON}; charset=utf-8")),
    (Mistake.NEWLINE, of_full(lambda request: full(request, newline="\r\n"))),
    (Mistake.ESCAPED_NEWLINE, of_lite(lambda request: lite(request, newline="\\n"))),
    (Mistake.FINAL_NEWLINE, of_full(lambda request: full(request) + "\n")),
    (Mistake.CLOCK_SKEW, dated(timedelta(minutes=-16))),
    (Mistake.CLOCK_SKEW, dated(timedelta(hours=3))),
    (Mistake.NO_DATE, then(sign, x_ms_date=None)),
    (Mistake.NO_AUTHORIZATION, lambda request: request),
    (Mistake.MALFORMED_AUTHORIZATION, lambda request: request.having(Authorization=f"SharedKey {ACCOUNT}")),
    (
        Mistake.MALFORMED_AUTHORIZATION,
        lambda request: request.having(Authorization="SharedKey acme:no base64"),
    ),
    (Mistake.ACCOUNT_DIFFERS, lambda request: authorized(request, full(request), account="other")),
]

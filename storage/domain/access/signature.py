"""Shared Key and Shared Key Lite: string to sign and verification."""

import binascii
import hashlib
import hmac
import re
from calendar import timegm
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_tz
from enum import Enum
from functools import lru_cache
from string import ascii_letters, digits
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from storage.domain.errors import AuthenticationFailed, InvalidAuthenticationInfo

CLOCK_SKEW: Final = 15 * 60  # seconds, both ways

_DEPTH_LIMIT: Final = 16  # depth of a path that is tried in other spellings; no resource is that deep
_UNRESERVED: Final = (ascii_letters + digits + "-._~").encode()
_ESCAPE: Final = re.compile(rb"%[0-9A-Fa-f]{2}")


class Scheme(Enum):
    SHARED_KEY = b"SharedKey"
    SHARED_KEY_LITE = b"SharedKeyLite"


class Authorization(NamedTuple):
    scheme: Scheme
    account: str
    mac: bytes


class SignedRequest(NamedTuple):
    """Parts of a request that a signature covers, as on the wire."""

    method: str
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    account: str


def read_authorization(value: bytes) -> Authorization:
    name, _, credentials = value.strip().partition(b" ")
    scheme = _SCHEMES.get(name) or _SCHEMES.get(name.lower())
    account, colon, mac = credentials.lstrip().partition(b":")
    if scheme is None or not account or not colon or not mac:
        raise InvalidAuthenticationInfo
    try:
        return Authorization(scheme, account.decode("ascii"), binascii.a2b_base64(mac, strict_mode=True))
    except ValueError:  # no base64, or no ASCII
        raise InvalidAuthenticationInfo from None


def verify(request: SignedRequest, authorization: Authorization, keys: Sequence[bytes], now: float) -> int:
    """Return the index of the key that signed the request; raises AuthenticationFailed if none did.

    ``keys`` are decoded, and empty for an unknown account; ``now`` is in seconds since 1970.
    """
    if authorization.account != request.account:
        raise AuthenticationFailed
    date = _date(request)
    _check_freshness(date, now)
    prefix, suffix = _around_path(request, authorization.scheme, date)
    key = _signer(prefix + (request.path or b"/") + suffix, authorization.mac, keys)
    if key is not None:
        return key
    for path in {*_other_spellings(request.path, request.account.encode())} - {request.path}:
        key = _signer(prefix + path + suffix, authorization.mac, keys)
        if key is not None:
            return key
    text = string_to_sign(request, authorization.scheme).decode("utf-8", "replace")
    raise AuthenticationFailed(
        AuthenticationErrorDetail="The MAC signature found in the HTTP request is not the same as any "
        f"computed signature. Server used following string to sign: '{text}'."
    )


def sign(request: SignedRequest, key: bytes, scheme: Scheme = Scheme.SHARED_KEY) -> bytes:
    """Return the Authorization header for a request that already has its date."""
    mac = hmac.digest(key, string_to_sign(request, scheme), "sha256")
    return b"%b %b:%b" % (scheme.value, request.account.encode(), binascii.b2a_base64(mac, newline=False))


def string_to_sign(request: SignedRequest, scheme: Scheme) -> bytes:
    prefix, suffix = _around_path(request, scheme, _date(request))
    return prefix + (request.path or b"/") + suffix


def _signer(text: bytes, mac: bytes, keys: Sequence[bytes]) -> int | None:
    for index, key in enumerate(keys):
        begun_inner, begun_outer = _begin_hmac(key)
        inner, outer = begun_inner.copy(), begun_outer.copy()
        inner.update(text)
        outer.update(inner.digest())
        if hmac.compare_digest(outer.digest(), mac):
            return index
    return None


@lru_cache(maxsize=1024)
def _begin_hmac(key: bytes) -> "tuple[hashlib._Hash, hashlib._Hash]":
    """Return the inner and outer SHA-256 states of HMAC after the key; hmac.digest would hash the key on each call."""
    block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    return hashlib.sha256(bytes(byte ^ 0x36 for byte in block)), hashlib.sha256(
        bytes(byte ^ 0x5C for byte in block)
    )


def _around_path(request: SignedRequest, scheme: Scheme, date: bytes) -> tuple[bytes, bytes]:
    """Return the string to sign before and after the path, which may have several spellings."""
    account = request.account.encode()
    component = _component(request.query) if request.query else b""
    if scheme is Scheme.SHARED_KEY_LITE:
        return b"%b\n/%b" % (date, account), component
    headers = request.headers
    md5, media_type = headers.get(b"content-md5", b""), headers.get(b"content-type", b"")
    return b"%b\n%b\n%b\n%b\n/%b" % (request.method.encode(), md5, media_type, date, account), component


def _component(query: bytes) -> bytes:
    """Return ``comp`` with its value as sent, the only signed query parameter."""
    lower = query.lower()
    if b"comp=" in lower or b"%" in lower:
        for option in query.split(b"&"):
            name, _, value = option.partition(b"=")
            if b"%" in name:  # otherwise the operation could differ from the signed one
                name = unquote_to_bytes(name)
            if name.lower() == b"comp":
                return b"?comp=" + value
    return b""


def _date(request: SignedRequest) -> bytes:
    date = request.headers.get(b"x-ms-date")
    return request.headers.get(b"date", b"") if date is None else date


def _check_freshness(date: bytes, now: float) -> None:
    instant = read_date(date)
    if instant is None:
        raise AuthenticationFailed(AuthenticationErrorDetail="The request has no valid date.")
    if not -CLOCK_SKEW <= now - instant <= CLOCK_SKEW:
        direction = "old" if instant < now else "far in the future"
        raise AuthenticationFailed(
            AuthenticationErrorDetail=f"Request date header too {direction}: '{date.decode('latin-1')}'"
        )


@lru_cache(maxsize=256)
def read_date(date: bytes) -> int | None:
    """Parse a date in the format of RFC 1123, RFC 850 or asctime to seconds since 1970."""
    if len(date) > 64:
        return None
    try:
        fields = parsedate_tz(date.decode("ascii"))
        # asctime has no zone: it is UTC, not the zone of this machine
        return None if fields is None else timegm(fields[:9]) - (fields[9] or 0)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def _other_spellings(path: bytes, account: bytes) -> Iterator[bytes]:
    """Yield equivalent spellings of a path that a client may have signed before it or a proxy changed them."""
    if path.count(b"/") > _DEPTH_LIMIT:
        return
    secondary = b"/%b-secondary" % account
    paths = [path]
    if path == secondary or path.startswith(secondary + b"/"):
        # some clients sign the primary address when they read from the secondary
        below = path[len(secondary) :]
        paths.append(b"/" + account + below)
        if below.startswith(b"/%b/" % account):
            paths.append(below)
        yield from paths[1:]
    for spelling in paths:
        yield spelling.replace(b"%27", b"'")
        yield b"/".join(_respell(segment) for segment in spelling.split(b"/"))
        yield _unescape(spelling, _BY_MOST)
        yield _unescape(spelling, _BY_YARL)


def _respell(segment: bytes) -> bytes:
    """Escape like .NET's System.Uri: everything but unreserved and reserved characters."""
    return quote(unquote_to_bytes(segment), safe="!$&'()*+,;=:@[]").encode()


def _unescape(path: bytes, characters: Mapping[bytes, bytes]) -> bytes:
    return _ESCAPE.sub(lambda escape: characters.get(escape[0], escape[0]), path)


def _by_escape(characters: bytes) -> Mapping[bytes, bytes]:
    return {form % code: bytes((code,)) for code in characters for form in (b"%%%02X", b"%%%02x")}


_BY_MOST: Final = _by_escape(_UNRESERVED)
_BY_YARL: Final = _by_escape(_UNRESERVED + b"!$&'()*,;=:@")  # aiohttp uses yarl
_SCHEMES: Final = {name: scheme for scheme in Scheme for name in (scheme.value, scheme.value.lower())}

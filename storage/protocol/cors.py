"""CORS headers of preflight and other responses, by the rules of an account."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from storage.domain.errors import CorsPreflightFailure, InvalidHeaderValue
from storage.domain.service_properties.cors import (
    MISSING_CORS_HEADER,
    check_preflight,
    find_rule,
    matches_header,
)
from storage.domain.service_properties.properties import CorsRule

Headers = list[tuple[bytes, bytes]]

_VARY: Final = (b"Vary", b"Origin")
_READING: Final = frozenset({"GET", "HEAD"})  # methods whose answers may be cached


def preflight(rules: Sequence[CorsRule], headers: Mapping[bytes, bytes]) -> Headers:
    """Return the response headers of a preflight request; raises CorsPreflightFailure."""
    origin = headers.get(b"origin")
    method = headers.get(b"access-control-request-method")
    if not origin or not method:
        raise InvalidHeaderValue(MISSING_CORS_HEADER)
    requested = headers.get(b"access-control-request-headers", b"")
    verdict = check_preflight(
        rules, origin.decode("latin-1"), method.decode("latin-1"), requested.decode("latin-1")
    )
    if verdict.place is None or not verdict.is_allowed:
        raise CorsPreflightFailure
    rule = rules[verdict.place]
    answer = [*_allowed_origin(rule, origin), (b"Access-Control-Allow-Methods", method)]
    if requested:
        answer.append((b"Access-Control-Allow-Headers", requested))
    answer.append((b"Access-Control-Max-Age", b"%d" % rule.max_age))
    return answer


def response_headers(rules: Sequence[CorsRule], method: str, origin: bytes | None, sent: Headers) -> Headers:
    """Return the CORS headers of any response, including errors; ``sent`` are its other headers."""
    if origin is None:
        # a rule for every origin holds for a request without one, too, by the service's table of results
        place = next((at for at, it in enumerate(rules) if "*" in it.origins and method in it.methods), None)
        origin = b""
    else:
        place = find_rule(rules, origin.decode("latin-1"), method)
    if place is None:
        return [_VARY] if rules and method in _READING else []
    rule = rules[place]
    answer = _allowed_origin(rule, origin)
    exposed = b", ".join(_exposed(rule, sent))
    if exposed:
        answer.append((b"Access-Control-Expose-Headers", exposed))
    if method in _READING and _is_named(rule, origin):
        answer.append(_VARY)
    return answer


def _is_named(rule: CorsRule, origin: bytes) -> bool:
    return origin.decode("latin-1") in rule.origins


def _allowed_origin(rule: CorsRule, origin: bytes) -> Headers:
    if not _is_named(rule, origin):
        return [(b"Access-Control-Allow-Origin", b"*")]
    return [(b"Access-Control-Allow-Origin", origin), (b"Access-Control-Allow-Credentials", b"true")]


def _exposed(rule: CorsRule, sent: Headers) -> Iterator[bytes]:
    """Yield the exposed headers: those named by the rule, and sent ones that match its prefixes."""
    names = {pattern.lower(): pattern.encode() for pattern in rule.exposed_headers if pattern[-1] != "*"}
    for prefix in (pattern for pattern in rule.exposed_headers if pattern[-1] == "*"):
        for name, _ in sent:
            lower = name.decode().lower()
            if matches_header(prefix.lower(), lower):
                names.setdefault(lower, name)
    return iter(names.values())

"""Consistency headers, as in Cosmos DB, for accounts of any kind."""

from typing import Final

from storage.domain.errors import InvalidHeaderValue
from storage.domain.requests.consistency import (
    Consistency,
    ReadTerms,
    Session,
    read_level,
    read_token,
    write_token,
)
from storage.domain.values.kinds import AccountKind
from storage.protocol.http_request import Headers
from storage.protocol.incoming import IncomingRequest
from storage.runtime.catalog import KnownAccount

LEVEL: Final = "x-ms-consistency-level"
TOKEN: Final = "x-ms-session-token"  # noqa: S105
_ENCODED_LEVEL: Final = LEVEL.encode()
_ENCODED_TOKEN: Final = TOKEN.encode()


def read_terms(request: IncomingRequest, account: KnownAccount) -> ReadTerms | None:
    """Return the consistency terms of a request, None for strong consistency; raises InvalidHeaderValue."""
    asked = request.headers.get(_ENCODED_LEVEL)
    is_secondary = request.address.secondary
    if asked is None and not is_secondary and account.consistency is Consistency.STRONG:
        return None
    level = _default_level(account, is_secondary) if asked is None else _read_level(asked, account)
    if level is Consistency.STRONG:
        return None
    session = _read_session(request) if level is Consistency.SESSION else None
    return ReadTerms(level, account.max_staleness, session)


def write_session(terms: ReadTerms | None) -> Headers:
    """Return the session token header with the log position that the session has seen."""
    if terms is None or terms.session is None:
        return []
    session = terms.session
    position = session.token if session.position is None else max(session.position, session.token)
    return [(_ENCODED_TOKEN, write_token(position).encode())] if position else []


def _default_level(account: KnownAccount, is_secondary: bool) -> Consistency:
    """Return the default consistency level of an account."""
    is_behind = is_secondary and account.kind is AccountKind.STORAGE
    if is_behind and account.consistency is Consistency.STRONG:
        return Consistency.EVENTUAL
    return account.consistency


def _read_level(asked: bytes, account: KnownAccount) -> Consistency:
    text = asked.decode("latin-1")
    level = read_level(text)
    if level is None:
        raise InvalidHeaderValue(HeaderName=LEVEL, HeaderValue=text)
    if level.rank < account.consistency.rank:
        raise InvalidHeaderValue(
            f"The consistency level {level} in the request is stronger than {account.consistency}, the level of the "
            "account.",
            HeaderName=LEVEL,
            HeaderValue=text,
        )
    return level


def _read_session(request: IncomingRequest) -> Session:
    sent = request.headers.get(_ENCODED_TOKEN)
    if sent is None:
        return Session()
    text = sent.decode("latin-1")
    token = read_token(text)
    if token is None:
        raise InvalidHeaderValue(HeaderName=TOKEN, HeaderValue=text)
    return Session(token)

"""The header ``x-tablero-as-of``, an addition to the protocol: read entities as they were at a time."""

from typing import Final

from storage.domain.entities.moments import Moment, read_moment
from storage.domain.errors import InvalidHeaderValue
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import write_datetime
from storage.protocol.call import OperationRequest
from storage.protocol.http_request import Headers

NAME: Final = "x-tablero-as-of"
_ENCODED: Final = NAME.encode()


def read(request: OperationRequest) -> Moment | None:
    """Return the time that a request asks for; None: now. Raises InvalidHeaderValue."""
    value = request.headers.get(_ENCODED)
    if value is None:
        return None
    moment = read_moment(value.decode("latin-1"))
    if moment is None:
        raise _invalid(value)
    return moment


def refuse(request: OperationRequest) -> None:
    """Raise InvalidHeaderValue if a request that cannot be of the past has the header."""
    value = request.headers.get(_ENCODED)
    if value is not None:
        raise _invalid(value)


def write(moment: Moment | None, dialect: Dialect) -> Headers:
    """Return the headers of an answer, with the time as the account writes times."""
    return [] if moment is None else [(_ENCODED, write_datetime(moment.ticks, dialect.kind).encode())]


def _invalid(value: bytes) -> InvalidHeaderValue:
    return InvalidHeaderValue(HeaderName=NAME, HeaderValue=value.decode("latin-1"))

"""The header ``x-tablero-as-of``, a protocol extension to read the past."""

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
    """Return the requested moment of the past; None for the present. Raises InvalidHeaderValue."""
    value = request.headers.get(_ENCODED)
    if value is None:
        return None
    moment = read_moment(value.decode("latin-1"))
    if moment is None:
        raise _invalid(value)
    return moment


def refuse(request: OperationRequest) -> None:
    """Raise InvalidHeaderValue if the header is on a request that cannot read the past."""
    value = request.headers.get(_ENCODED)
    if value is not None:
        raise _invalid(value)


def write(moment: Moment | None, dialect: Dialect) -> Headers:
    """Return the response headers with the time in the account's format."""
    return [] if moment is None else [(_ENCODED, write_datetime(moment.ticks, dialect.kind).encode())]


def _invalid(value: bytes) -> InvalidHeaderValue:
    return InvalidHeaderValue(HeaderName=NAME, HeaderValue=value.decode("latin-1"))

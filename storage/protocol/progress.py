"""Progress of a request through its stages, and the record made of it."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.domain.access.grants import Operation
from storage.domain.errors import StorageError
from storage.domain.requests.cleaning import clean_table
from storage.domain.requests.consistency import ReadTerms
from storage.domain.requests.observed import ObservedRequest
from storage.domain.values import dialects
from storage.domain.values.dialects import Dialect
from storage.domain.values.kinds import AccountKind
from storage.protocol.authorization import Authorized, read_authentication
from storage.protocol.errors import ErrorOrigin
from storage.protocol.http_request import RequestHead
from storage.protocol.incoming import Caller, IncomingRequest, ResolvedRequest, resolve_request
from storage.runtime.catalog import KnownAccount

if TYPE_CHECKING:
    from storage.protocol.rehearsed_exchange import RehearsedRequest


@dataclass(slots=True)
class Progress:
    """Results of a request's stages so far; ``origin`` is the current origin of an error."""

    head: RequestHead
    observed: ObservedRequest
    origin: ErrorOrigin = ErrorOrigin.FRONT_END
    request: IncomingRequest | None = None
    account: KnownAccount | None = None
    dialect: Dialect = dialects.STORAGE  # the account's dialect
    caller: Caller | None = None
    authorized: Authorized | None = None
    resolved: ResolvedRequest | None = None
    terms: ReadTerms | None = None
    error: StorageError | None = None  # the one that is answered
    status: int = 0  # the status of the answer
    failure: Exception | None = None  # an unexpected one, which is answered as an InternalError
    rehearsed: "RehearsedRequest | None" = None


def observe(progress: Progress) -> Operation | None:
    """Record the results of a request's stages for logs and metrics; return its operation, if any."""
    observed, request, account, error = progress.observed, progress.request, progress.account, progress.error
    if error is not None:
        observed.error, observed.refusal = error.code, error
    if request is None or progress.caller is None:
        return None
    if account is not None:
        observed.account_id, observed.account, observed.kind = account.id, account.name, account.kind
    observed.secondary = request.address.secondary
    observed.address, observed.agent = progress.caller
    if request.method == "OPTIONS":
        observed.operation = Operation.PREFLIGHT
        return observed.operation
    observed.authentication = read_authentication(request)
    if progress.authorized is not None:
        observed.credential = progress.authorized.credential
    resolved = progress.resolved
    if resolved is not None:
        observed.operation = resolved.operation
    elif account is not None and error is not None and progress.failure is None:
        # a request that is refused before this stage is shown with its table too
        with suppress(StorageError):
            resolved = resolve_request(request, progress.head.fields, account.name, progress.dialect)
    if resolved is None:
        return None
    if not observed.table:
        _observe_table(observed, resolved.target.table)
    return resolved.operation


def _observe_table(observed: ObservedRequest, name: str) -> None:
    """Record the table name; in Cosmos accounts, where nearly every text is a valid name, it is unconfirmed."""
    observed.table = clean_table(name, observed.kind) if name else ""
    observed.possible_table = "" if observed.table or observed.kind is AccountKind.STORAGE else name


def forget_frames(error: Exception) -> None:
    """Detach an error from the frames of its request, which refer to it, and to all that was read.

    They would stay in memory until the garbage collector runs, which is rarely.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None

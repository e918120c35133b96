"""Call of an operation, and its result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from storage.domain.access.actor import Actor
from storage.domain.access.grants import Grant
from storage.domain.access.identity import Trust
from storage.domain.errors import BadRequest, TableNotFound
from storage.domain.requests.consistency import ReadTerms
from storage.domain.requests.observed import ACTORS, Credential, ObservedRequest
from storage.domain.requests.routes import Address, Target
from storage.domain.values.dialects import KEY_LENGTH_LIMIT, Dialect
from storage.domain.values.etag import write_etag
from storage.domain.values.names import fold_table_name
from storage.protocol import cosmos
from storage.protocol.accept import Format
from storage.protocol.http_request import Headers
from storage.protocol.incoming import Caller
from storage.protocol.json_format import Context
from storage.protocol.negotiation import response_format
from storage.protocol.query_options import read_select
from storage.runtime.catalog import KnownAccount
from storage.runtime.service import Service


class Answer(NamedTuple):
    """Response of an operation: its own headers, and a reason phrase if it is not the usual one."""

    status: int
    headers: Headers
    body: bytes = b""
    reason: bytes | None = None


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Server-specific settings."""

    conninfo: str
    host_suffixes: tuple[str, ...] = ()
    bearer: Trust | None = None
    key_length_limit: int = KEY_LENGTH_LIMIT


class OperationRequest(NamedTuple):
    """Requested operation, alone or as part of a batch; ``method`` is the effective one."""

    method: str
    target: Target
    options: Mapping[str, str]
    headers: Mapping[bytes, bytes]
    version: str
    body: bytes

    def response_format(self) -> Format:
        """Return the negotiated format of the response."""
        return response_format(self.options.get("$format"), self.headers.get(b"accept"), self.version)


class Call(NamedTuple):
    """Authorized call of one operation, with all that is needed to execute it."""

    request: OperationRequest
    account: KnownAccount
    dialect: Dialect
    grant: Grant
    credential: Credential
    caller: Caller
    address: Address
    service: Service
    observed: ObservedRequest
    terms: ReadTerms | None = None  # None: at the level strong

    def actor(self) -> Actor:
        """Return the caller as an actor for the activity log."""
        credential, caller = self.credential, self.caller
        return Actor(
            ACTORS[credential.authentication],
            credential.name,
            caller.address,
            caller.agent.decode("latin-1"),
            self.observed.request_id,
        )

    def context(self, form: Format, table: str) -> Context:
        options = self.request.options
        return Context(
            form,
            self.address.base,
            self.account.name,
            table,
            read_select(options),
            options.get("raw:$select"),
            self.dialect,
        )

    def fold(self, table: str) -> str:
        """Return the identity of an entity's table; raises the errors of an invalid name.

        Cosmos reports a table name that is too long as not found, where Azure Table storage calls it invalid.
        """
        try:
            return fold_table_name(table, self.dialect.kind)
        except BadRequest:
            raise TableNotFound from None

    def content_type(self, form: Format) -> tuple[bytes, bytes]:
        return b"Content-Type", cosmos.CONTENT_TYPES[form] if self.dialect.is_cosmos else form.content_type

    def data_service_id(self, location: bytes) -> Headers:
        """Return the DataServiceId header, which repeats Location if no entity is returned; none for Cosmos."""
        return [] if self.dialect.is_cosmos else [(b"DataServiceId", location)]

    def etag(self, timestamp: int) -> tuple[bytes, bytes]:
        return b"ETag", write_etag(timestamp, self.dialect.kind).encode()

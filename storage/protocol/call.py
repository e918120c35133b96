"""What an operation is given, and what it returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.grants import Grant
from storage.domain.access.identity import Trust
from storage.domain.requests.observed import Authentication, ObservedRequest
from storage.domain.requests.routes import Address, Target
from storage.domain.values.names import KEY_LENGTH_LIMIT
from storage.operations.catalog import KnownAccount
from storage.operations.service import Service
from storage.protocol.accept import Format
from storage.protocol.http_request import Headers
from storage.protocol.json_format import Context
from storage.protocol.negotiation import response_format
from storage.protocol.query_options import read_select


class Answer(NamedTuple):
    """What an operation returns: its own headers only."""

    status: int
    headers: Headers
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings that differ between servers."""

    conninfo: str
    host_suffixes: tuple[str, ...] = ()
    bearer: Trust | None = None
    key_length_limit: int = KEY_LENGTH_LIMIT


class OperationRequest(NamedTuple):
    """One operation as requested, alone or as a part of a batch; ``method`` is the effective one."""

    method: str
    target: Target
    options: Mapping[str, str]
    headers: Mapping[bytes, bytes]
    version: str
    body: bytes

    def response_format(self) -> Format:
        """The format of the answer, if it has a body."""
        return response_format(self.options.get("$format"), self.headers.get(b"accept"), self.version)


class Call(NamedTuple):
    """An authorized request for one operation, with what it takes to carry it out."""

    request: OperationRequest
    account: KnownAccount
    grant: Grant
    address: Address
    service: Service
    settings: ServerSettings
    observed: ObservedRequest

    def actor(self) -> Actor:
        """The caller, as the activity log records it."""
        credential = self.observed.credential
        assert credential is not None
        return Actor(
            _ACTORS[credential.authentication],
            credential.name,
            self.observed.address,
            self.observed.agent.decode("latin-1"),
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
        )


_ACTORS: Final = {
    Authentication.KEY: ActorKind.KEY,
    Authentication.SAS: ActorKind.SAS,
    Authentication.BEARER: ActorKind.BEARER,
}
CONTENT_TYPES: Mapping[Format, tuple[bytes, bytes]] = {
    form: (b"Content-Type", form.content_type) for form in Format
}

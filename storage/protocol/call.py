"""What an operation is given, and what it gives back."""

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
from storage.protocol.negotiation import response_format
from storage.protocol.payload import Context
from storage.protocol.query_options import read_select

Headers = list[tuple[bytes, bytes]]


class Answer(NamedTuple):
    status: int
    headers: Headers
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Rules:
    """What differs between servers."""

    conninfo: str
    host_suffixes: tuple[str, ...] = ()
    bearer: Trust | None = None
    key_length_limit: int = KEY_LENGTH_LIMIT


class Call(NamedTuple):
    """An authorized request for one operation, alone or as a part of a batch; ``method`` is the effective one."""

    service: Service
    rules: Rules
    account: KnownAccount
    grant: Grant
    address: Address
    method: str
    target: Target
    options: Mapping[str, str]
    headers: Mapping[bytes, bytes]
    version: str
    body: bytes
    observed: ObservedRequest

    def actor(self) -> Actor:
        """Who the request is from, as it is kept in mind."""
        credential = self.observed.credential
        assert credential is not None
        return Actor(
            _ACTORS[credential.authentication],
            credential.name,
            self.observed.address,
            self.observed.agent.decode("latin-1"),
            self.observed.request_id,
        )

    def format(self) -> Format:
        """Of the answer, if that has a body."""
        return response_format(self.options.get("$format"), self.headers.get(b"accept"), self.version)

    def context(self, form: Format, table: str) -> Context:
        return Context(
            form,
            self.address.base,
            self.account.name,
            table,
            read_select(self.options),
            self.options.get("raw:$select"),
        )


_ACTORS: Final = {
    Authentication.KEY: ActorKind.KEY,
    Authentication.SAS: ActorKind.SAS,
    Authentication.BEARER: ActorKind.BEARER,
}
CONTENT_TYPES: Mapping[Format, tuple[bytes, bytes]] = {
    form: (b"Content-Type", form.content_type) for form in Format
}

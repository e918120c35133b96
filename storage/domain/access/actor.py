"""The actor of a recorded activity."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, Final

from storage.domain.values.stored import read_member


class ActorKind(StrEnum):
    """Method by which the actor was authenticated."""

    # every write looks up who makes it, and Enum's own hash is slow Python code
    __hash__ = str.__hash__

    USER = "user"  # a user of the console
    KEY = "key"
    SAS = "sas"
    BEARER = "bearer"
    TOKEN = "token"  # noqa: S105  of the management API
    COMMAND = "command"  # a command of manage.py
    SERVER = "server"  # by itself


@dataclass(frozen=True, slots=True)
class Actor:
    """An actor: the user, client or program that does something."""

    kind: ActorKind
    # the user name of a user, else as in requests.observed.Credential; never a signature
    name: Annotated[str, "Of the key, the token or the user."] = ""
    address: Annotated[str, "The client's IP address."] = ""
    agent: Annotated[str, "The client's `User-Agent`."] = ""
    request_id: str = ""
    # set if a script acts for the user
    token: Annotated[str, "Name of the user's API token; empty: none."] = ""
    # looked up to show the actor; not recorded
    label: Annotated[str, "Label of the SAS token, whose name is its fingerprint; empty: none."] = ""
    token_id: int | None = None  # the primary key of the API token; not recorded

    @property
    def short_name(self) -> str:
        """Return the display name; for a SAS token without a label, the start of its fingerprint."""
        return (self.label or self.name[:8]) if self.kind is ActorKind.SAS else self.name


def dump_actor(actor: Actor) -> dict[str, str]:
    """Serialize an actor to JSON, for work that another process may finish."""
    written = asdict(actor)
    del written["token_id"]  # older versions do not know it
    return {**written, "kind": actor.kind.value}


def load_actor(written: Mapping[str, Any]) -> Actor:
    known = {field.name: written[field.name] for field in fields(Actor) if field.name in written}
    return Actor(**{**known, "kind": read_member(ActorKind, known["kind"])})


SERVER: Final = Actor(ActorKind.SERVER)
COMMAND: Final = Actor(ActorKind.COMMAND)

"""Who does something that is kept in mind, through whatever door."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ActorKind(StrEnum):
    """By what somebody was let in."""

    USER = "user"  # of the console
    KEY = "key"
    SAS = "sas"
    BEARER = "bearer"
    TOKEN = "token"  # noqa: S105  of the management API
    COMMAND = "command"  # of manage.py
    SERVER = "server"  # by itself


@dataclass(frozen=True, slots=True)
class Actor:
    """``name``: of a user their user name, else as in domain.observed.Credential, never a signature.

    ``token``: the name of the user's token, through which a script acts.
    """

    kind: ActorKind
    name: str = ""
    address: str = ""  # of the client
    agent: str = ""
    request_id: str = ""
    token: str = ""


SERVER: Final = Actor(ActorKind.SERVER)
COMMAND: Final = Actor(ActorKind.COMMAND)

"""Who performed a recorded activity."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ActorKind(StrEnum):
    """How the actor was authenticated."""

    # every write looks up who makes it, and Enum's own hash is slow Python code
    __hash__ = str.__hash__

    USER = "user"  # of the console
    KEY = "key"
    SAS = "sas"
    BEARER = "bearer"
    TOKEN = "token"  # noqa: S105  of the management API
    COMMAND = "command"  # of manage.py
    SERVER = "server"  # by itself


@dataclass(frozen=True, slots=True)
class Actor:
    """``name``: the user name of a user, else as in requests.observed.Credential; never a signature.

    ``token``: the name of the user's API token, if a script acts for the user.
    """

    kind: ActorKind
    name: str = ""
    address: str = ""  # of the client
    agent: str = ""
    request_id: str = ""
    token: str = ""


SERVER: Final = Actor(ActorKind.SERVER)
COMMAND: Final = Actor(ActorKind.COMMAND)

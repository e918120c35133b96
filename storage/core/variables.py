"""Environment variables that configure a server."""

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "TABLERO_"


@dataclass(frozen=True, slots=True)
class Variable:
    """Environment variable; those with a help text are options of `serve`, too."""

    name: str
    default: str = ""
    help: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    is_flag: bool = False
    separator: str = ""  # separator of several values
    least: int = 0  # least value of a number
    most: int = 0
    alias: str = ""  # the values are URLs of databases that answer reads beside the primary, called so
    after: str = ""  # the variable that it follows, if a subject declares it

    @property
    def key(self) -> str:
        return PREFIX + self.name

    @property
    def option(self) -> str:
        return "--" + self.name.lower().replace("_", "-")

"""Notation of a side of a comparison: ``account``, ``account/table``, either with ``@time`` or ``@snapshot``."""

import re
from dataclasses import dataclass
from typing import Self

_SIDE = re.compile(r"([^/@]+)(?:/(.+?))?(?:@([^@]*))?")


@dataclass(frozen=True, slots=True)
class SideName:
    """Account or table as a side of a comparison, at present or as of a time or snapshot ``at``."""

    account: str
    table: str = ""
    at: str = ""

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Parse the string form of a side name; None if it is malformed."""
        match = _SIDE.fullmatch(text)
        return None if match is None else cls(*(part or "" for part in match.groups()))

    def __str__(self) -> str:
        table = f"/{self.table}" if self.table else ""
        # a table of a Cosmos account may have an @ in its name
        at = f"@{self.at}" if self.at or "@" in self.table else ""
        return f"{self.account}{table}{at}"

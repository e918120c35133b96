"""Content of comments: their subjects, permitted text and mentions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import md5
from typing import Final

from storage.domain.entities.entity import EntityKey

LONGEST: Final = 4000  # characters of a comment
MOST_MENTIONED: Final = 20  # users in a comment
MOST_AT_ONCE: Final = 20  # comments of a user in a minute
RETENTION_DAYS: Final = 30  # days that deleted comments are kept
# as names of users are written; the last character is none that ends a sentence
_MENTION: Final = re.compile(r"(?<![\w.+@/-])@([A-Za-z0-9_+-]+(?:[.@][A-Za-z0-9_+-]+)*)", re.ASCII)


class SubjectKind(StrEnum):
    """Subject of a thread. The values are stored."""

    ENTITY = "entity"
    TABLE = "table"
    QUERY = "query"  # a saved one


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a thread: an entity by ``key``, a saved query by the number ``query``, or else the table."""

    key: EntityKey | None = None
    query: int | None = None

    @property
    def kind(self) -> SubjectKind:
        if self.key is not None:
            return SubjectKind.ENTITY
        return SubjectKind.TABLE if self.query is None else SubjectKind.QUERY

    @property
    def digest(self) -> bytes:
        """Return the digest by which subjects of a table are looked up."""
        pk, rk = self.key or ("", "")
        # the length tells where the first key ends
        text = f"{self.kind} {self.query or 0} {len(pk)} {pk}{rk}"
        return md5(text.encode(errors="surrogatepass"), usedforsecurity=False).digest()


def mentioned_names(text: str) -> list[str]:
    """Return the distinct names after @ in a text, in lower case and in order."""
    return list(dict.fromkeys(name.lower() for name in _MENTION.findall(text)))[:MOST_MENTIONED]


def split_mentions(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text into pieces, each with whether it is a mention."""
    end = 0
    for match in _MENTION.finditer(text):
        yield text[end : match.start()], False
        yield match.group(), True
        end = match.end()
    yield text[end:], False

"""The parts of snippets: their target, and entities as safely quoted literals, JSON and URLs."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.ast import Filter
from storage.domain.filters.literals import write_literal
from storage.domain.filters.writer import write
from storage.domain.values import edm, encoding
from storage.domain.values.edm import Edm, EdmValue


@dataclass(frozen=True, slots=True)
class Target:
    """The table a snippet works on; the account's ``endpoint`` has no trailing slash.

    ``token``: a SAS token to include; without one, the snippet reads a credential from the environment.
    """

    endpoint: str
    account: str
    table: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A query; ``keys`` are set if its filter names single entities."""

    filter: Filter | None
    select: tuple[str, ...] = ()
    top: int = 50  # of a page
    keys: tuple[EntityKey, ...] = ()


class BoundFilter:
    """A filter with placeholders for its strings, for clients that bind or escape them."""

    def __init__(self, root: Filter | None, target: Callable[[int, str], str]) -> None:
        self.texts: list[str] = []
        self._place = target
        self.text = write(root, self._literal) if root is not None else ""

    def _literal(self, value: EdmValue) -> str:
        if value.type is not Edm.STRING:
            return write_literal(value)
        self.texts.append(str(value.value))
        return self._place(len(self.texts) - 1, self.texts[-1])


@dataclass(frozen=True, slots=True)
class Snippet:
    title: str  # the name of the operation, not translated
    code: str


UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def quote_literal(text: str) -> str:
    """A string literal in JavaScript, C# and JSON."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def write_json(entity: Entity) -> str:
    """The entity as a request body: one line of ASCII JSON."""
    members = [
        f'"PartitionKey":{edm.quote(entity.key.partition_key)}',
        f'"RowKey":{edm.quote(entity.key.row_key)}',
    ]
    for name, value in entity.properties.items():
        if encoding.needs_annotation(value):
            members.append(f'{edm.quote(name + "@odata.type")}:"{value.type.value}"')
        members.append(f"{edm.quote(name)}:{encoding.write(value)}")
    return "{" + ",".join(members) + "}"


def entity_url(target: Target, key: EntityKey) -> str:
    """The URL of an entity; only unreserved characters are left, which need no escaping in a shell or a literal."""
    partition_key, row_key = (quote(part.replace("'", "''"), safe="'") for part in key)
    return f"{target.endpoint}/{target.table}(PartitionKey='{partition_key}',RowKey='{row_key}')"


def write_plain(value: EdmValue) -> str:
    """The JSON value without quotation marks."""
    return encoding.write(value).strip('"')

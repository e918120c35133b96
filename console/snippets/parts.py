"""What snippets are made of: where they go to, and an entity as literals and addresses that nothing breaks out of."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters import Filter, write
from storage.domain.filters.literals import write_literal
from storage.domain.values import edm, encoding
from storage.domain.values.edm import Edm, EdmValue


@dataclass(frozen=True, slots=True)
class Place:
    """Where a snippet goes to; ``endpoint`` is of the account, without a slash at its end.

    ``token``: a shared access signature to be written into it; otherwise a credential comes from the environment.
    """

    endpoint: str
    account: str
    table: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """What a query asks for; ``keys`` are the entities it finds, if it names them one by one."""

    filter: Filter | None
    select: tuple[str, ...] = ()
    top: int = 50  # of a page
    keys: tuple[EntityKey, ...] = ()


class Bound:
    """A filter whose texts stand beside it, for clients that put them in themselves."""

    def __init__(self, root: Filter | None, place: Callable[[int, str], str]) -> None:
        self.texts: list[str] = []
        self._place = place
        self.text = write(root, self._literal) if root is not None else ""

    def _literal(self, value: EdmValue) -> str:
        if value.type is not Edm.STRING:
            return write_literal(value)
        self.texts.append(str(value.value))
        return self._place(len(self.texts) - 1, self.texts[-1])


@dataclass(frozen=True, slots=True)
class Snippet:
    title: str  # of the operation; the service's own word
    code: str


UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def quoted(text: str) -> str:
    """A literal of JavaScript, C# and JSON."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def document(entity: Entity) -> str:
    """The entity as one line of ASCII JSON, as a request carries it."""
    members = [
        f'"PartitionKey":{edm.quote(entity.key.partition_key)}',
        f'"RowKey":{edm.quote(entity.key.row_key)}',
    ]
    for name, value in entity.properties.items():
        if encoding.needs_annotation(value):
            members.append(f'{edm.quote(name + "@odata.type")}:"{value.type.value}"')
        members.append(f"{edm.quote(name)}:{encoding.write(value)}")
    return "{" + ",".join(members) + "}"


def address(place: Place, key: EntityKey) -> str:
    """Everything but the unreserved characters is escaped, so that no shell and no literal sees any other."""
    partition_key, row_key = (quote(part.replace("'", "''"), safe="'") for part in key)
    return f"{place.endpoint}/{place.table}(PartitionKey='{partition_key}',RowKey='{row_key}')"


def plain(value: EdmValue) -> str:
    """The value as it is sent, without quotation marks."""
    return encoding.write(value).strip('"')

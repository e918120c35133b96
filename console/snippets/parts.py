"""What snippets are made of: where they go to, and an entity as literals and addresses that nothing breaks out of."""

import json
import re
from dataclasses import dataclass
from urllib.parse import quote

from storage.domain import edm, encoding
from storage.domain.edm import EdmValue
from storage.domain.entity import Entity, EntityKey


@dataclass(frozen=True, slots=True)
class Place:
    """Where a snippet goes to; ``endpoint`` is of the account, without a slash at its end."""

    endpoint: str
    account: str
    table: str


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
        if encoding.annotated(value):
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

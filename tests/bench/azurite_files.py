"""A file of Azurite's table service with more entities than could be sent to it in reasonable time.

Azurite itself makes it with one entity, whose document is repeated with other keys, so that the file is what this
version would write. When Azurite saves it, all of it is one string of Node.js, which has 512 Mi characters at most:
1,000,000 of these entities are 410 million.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient

from storage.remote.azurite import FILE_NAME
from tests.bench import servers
from tests.bench.entities import Dataset

TABLE = "small"


@dataclass(frozen=True, slots=True)
class SmallDataset(Dataset):
    """The same keys with a short text and a number."""

    def body(self, number: int, partition_key: str, row_key: str) -> str:
        return (
            f'{{"PartitionKey":"{partition_key}","RowKey":"{row_key}",'
            f'"Name":"{self.owner(number)}","Number":{number}}}'
        )


def make(folder: Path, program: servers.Azurite, data: Dataset) -> Path:
    """Write the file with one table to where an Azurite that is started in this folder reads it."""
    path = folder / servers.AZURITE_FOLDER / FILE_NAME
    with servers.azurite(folder, program) as server:
        credential = AzureNamedKeyCredential(servers.ACCOUNT, server.key)
        with TableClient(server.endpoint, TABLE, credential=credential) as client:
            client.create_table()
            client.create_entity(json.loads(data.body(0, *data.key(0))))
        made = wait_for_entity(path)
    with path.open("w") as file:
        file.writelines(repeat(made, data))
    return path


def wait_for_entity(path: Path) -> dict[str, Any]:
    """Return the file once it has an entity: it is written five seconds after a change, at most."""
    deadline = time.monotonic() + servers.START
    while time.monotonic() < deadline:
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):  # it is not there, or being written
            found = {"collections": []}
        if any(is_of_entities(it) and it["data"] for it in found["collections"]):
            return found
        time.sleep(0.1)
    raise servers.UnavailableError(f"Azurite has not saved an entity after {servers.START} s")


def is_of_entities(collection: dict[str, Any]) -> bool:
    return not collection["name"].startswith("$")


def repeat(made: dict[str, Any], data: Dataset) -> Iterator[str]:
    """Yield the text of a file with one entity, with all entities of the data in its place."""
    [collection] = filter(is_of_entities, made["collections"])
    [document] = collection["data"]
    collection |= {"data": [], "maxId": data.size}
    for index in collection["binaryIndices"].values():
        index["values"] = list(range(data.size))  # positions in the order of their values
    empty = write(collection)
    before, after = write(made).split(empty)
    opening, closing = empty.split('"data":[]')
    yield f'{before}{opening}"data":['
    for number in range(data.size):
        partition_key, row_key = keys = data.key(number)
        properties = {**document["properties"], **json.loads(data.body(number, *keys))}
        one = {
            "PartitionKey": partition_key,
            "RowKey": row_key,
            "properties": properties,
            "$loki": number + 1,
        }
        yield f"{',' if number else ''}{write({**document, **one})}"
    yield f"]{closing}{after}"


def write(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))

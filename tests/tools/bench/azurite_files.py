"""A file of Azurite's table service with more entities than could be sent to it in reasonable time.

Azurite itself makes it with an entity in each table, whose document is repeated with other keys, so that the file is
what this version would write. For each page Azurite sorts all that is left of a table, half a second of CPU time for
1,000,000 entities, so that they are in several tables. When it saves the file, all of it is one string of Node.js, of
512 Mi characters at most: 1,000,000 of these entities have 415 million.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from storage.remote.azurite import FILE_NAME
from tests.tools.bench import servers
from tests.tools.bench.entities import Dataset

TABLES = [f"small{number}" for number in range(10)]


@dataclass(frozen=True, slots=True)
class SmallDataset(Dataset):
    """Numbered entities with a short text and a number."""

    def body(self, number: int, partition_key: str, row_key: str) -> str:
        return (
            f'{{"PartitionKey":"{partition_key}","RowKey":"{row_key}",'
            f'"Name":"{self.owner(number)}","Number":{number}}}'
        )


def make(folder: Path, program: servers.Azurite, data: Dataset) -> Path:
    """Write the file, with these entities in each table, to where an Azurite started in this folder reads it."""
    path = folder / servers.AZURITE_FOLDER / FILE_NAME
    with servers.azurite(folder, program) as server:
        credential = AzureNamedKeyCredential(servers.ACCOUNT, server.key)
        with TableServiceClient(server.endpoint, credential=credential) as service:
            for table in TABLES:
                service.create_table(table).create_entity(json.loads(data.body(0, *data.key(0))))
        made = wait_for_entities(path)
    with path.open("w") as file:
        file.writelines(repeat(made, data))
    return path


def wait_for_entities(path: Path) -> dict[str, Any]:
    """Return the file once it has all entities: it is written five seconds after a change, at most."""
    deadline = time.monotonic() + servers.START
    while time.monotonic() < deadline:
        try:
            result: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):  # missing, or being written
            result = {"collections": []}
        if sum(len(it["data"]) for it in result["collections"] if is_of_entities(it)) == len(TABLES):
            return result
        time.sleep(0.1)
    raise servers.UnavailableError(f"Azurite has not saved its entities after {servers.START} s")


def is_of_entities(collection: dict[str, Any]) -> bool:
    return not collection["name"].startswith("$")


def repeat(made: dict[str, Any], data: Dataset) -> Iterator[str]:
    """Yield the text of a file whose tables have one entity, with all entities of the data in its place."""
    documents = {it["name"]: it["data"].pop() for it in made["collections"] if is_of_entities(it)}
    for collection in made["collections"]:
        if collection["name"] in documents:
            collection["maxId"] = data.size
            for index in collection["binaryIndices"].values():
                index["values"] = list(range(data.size))  # positions in the order of their values
    rest = write(made)
    for name, document in documents.items():
        before, name_and_opening, rest = rest.partition(f'{write(name)},"data":[')
        yield before + name_and_opening
        yield from repeat_document(document, data)
    yield rest


def repeat_document(document: dict[str, Any], data: Dataset) -> Iterator[str]:
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


def write(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))

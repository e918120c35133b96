"""Loading by the Python SDK: change sets of a hundred entities, sent by one client or by several at once.

Each client is a process of its own, because the SDK needs more CPU time than a server.
"""

import json
import subprocess
import sys
import time
from base64 import b64decode
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from tests.tools.bench import rounds
from tests.tools.bench.entities import Dataset, Layout
from tests.tools.bench.servers import ROOT, Server
from tests.tools.bench.workloads import BATCH_SIZE


@dataclass(frozen=True, slots=True)
class Loading:
    """Entities per second, and the ``cores`` that the clients kept busy."""

    per_second: float
    cores: float


def load(server: Server, entities: int, clients: int) -> Loading:
    """Load a new table, in partitions of a hundred, and drop it."""
    table = rounds.create(server)
    share = entities // clients // BATCH_SIZE * BATCH_SIZE
    with ExitStack() as stack:
        processes = [
            stack.enter_context(client(server, table, entities, range(number * share, (number + 1) * share)))
            for number in range(clients)
        ]
        for process in processes:
            process.stdout.readline()  # ready
        began = time.monotonic()
        for process in processes:
            process.stdin.close()
        used = [process.stdout.readline() for process in processes]
        if not all(used):
            raise rounds.WrongAnswerError(f"{server.name}: a client of the SDK failed")
        took = time.monotonic() - began
    rounds.drop(server, table)
    return Loading(clients * share / took, sum(map(float, used)) / took)


def client(server: Server, table: str, entities: int, numbers: range) -> subprocess.Popen[bytes]:
    where = [server.endpoint, server.key, table, str(entities), str(numbers.start), str(numbers.stop)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.tools.bench.sdk_loading", *where],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def send(endpoint: str, key: str, table: str, entities: int, numbers: range) -> None:
    """Load the entities of these numbers when standard input ends."""
    from azure.core.credentials import AzureNamedKeyCredential
    from azure.data.tables import TableClient

    data = Dataset(entities, Layout.MANY)
    account = endpoint.rpartition("/")[2]
    with TableClient(endpoint, table, credential=AzureNamedKeyCredential(account, key)) as target:
        list(target.query_entities("PartitionKey eq 'nothing'"))  # connects
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()
        began = time.process_time()
        for start in range(numbers.start, numbers.stop, BATCH_SIZE):
            batch = range(start, start + BATCH_SIZE)
            target.submit_transaction([("create", entity(data, number)) for number in batch])
        sys.stdout.write(f"{time.process_time() - began}\n")


def entity(data: Dataset, number: int) -> dict[str, Any]:
    """Return an entity with the types of the SDK."""
    from azure.data.tables import EdmType, EntityProperty

    members = json.loads(data.body(number, *data.key(number)))
    read = {
        "Edm.Int64": lambda value: EntityProperty(int(value), EdmType.INT64),
        "Edm.DateTime": datetime.fromisoformat,
        "Edm.Guid": UUID,
        "Edm.Binary": b64decode,
        "Edm.Double": float,
    }
    suffix = "@odata.type"
    types = {name.removesuffix(suffix): text for name, text in members.items() if name.endswith(suffix)}
    return {
        name: read[types[name]](value) if name in types else value
        for name, value in members.items()
        if not name.endswith(suffix)
    }


if __name__ == "__main__":
    endpoint, key, table, entities, start, stop = sys.argv[1:]
    send(endpoint, key, table, int(entities), range(int(start), int(stop)))

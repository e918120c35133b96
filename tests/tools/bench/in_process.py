"""The service in this process, without a network: a connection gets the bytes of requests and collects answers.

Statements go to a temporary PostgreSQL.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.seeds import SHARED, seeded
from tests.tools.bench import servers
from tests.tools.bench.entities import Dataset
from tests.tools.bench.load import Expected, answer_length, occurrences
from tests.tools.bench.requests import JSON, Client, with_body
from tests.tools.bench.rounds import WrongAnswerError, progress
from tests.tools.bench.workloads import Site, loading


class Transport(asyncio.Transport):
    """Collects what the connection writes, and tells when an answer is complete."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = bytearray()
        self.length = 0
        self.answered: asyncio.Future[None] | None = None

    def write(self, data: Any) -> None:
        self.answer += data
        self.length = self.length or answer_length(self.answer, len(self.answer))
        if self.length and len(self.answer) >= self.length and self.answered and not self.answered.done():
            self.answered.set_result(None)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 50_000) if name in ("peername", "sockname") else default

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Link:
    """A connection of the product without a network."""

    def __init__(self) -> None:
        from uvicorn import Config
        from uvicorn.server import ServerState

        from console import asgi
        from storage.protocol.http_connection import HttpConnection

        state = ServerState()
        state.default_headers = [(b"date", b"Sun, 22 Nov 2026 12:00:00 GMT")]
        self._loop = asyncio.get_running_loop()
        self._transport = Transport()
        config = Config(asgi.application, ws="none", lifespan="off", log_config=None, timeout_keep_alive=3600)
        self._connection = HttpConnection(asgi.applications, config, state, {}, self._loop)
        self._connection.connection_made(self._transport)

    async def send(self, request: bytes) -> bytearray:
        transport = self._transport
        transport.answer.clear()
        transport.length = 0
        transport.answered = self._loop.create_future()
        self._connection.data_received(request)
        await transport.answered
        return transport.answer

    async def send_all(self, requests: list[bytes], expected: Expected) -> None:
        for request in requests:
            check(await self.send(request), expected)


def check(answer: bytearray, expected: Expected) -> None:
    is_right = answer[9:12] == expected.status
    if is_right and expected.text:
        is_right = occurrences(answer, len(answer), expected.text) == expected.times
    if not is_right:
        raise WrongAnswerError(bytes(answer[:600]).decode(errors="replace"))


async def loaded_table(link: Link, table: str, data: Dataset) -> Site:
    site = Site(Client("http://127.0.0.1:10002/devstoreaccount1", servers.DEVELOPMENT_KEY), table, data)
    head = site.client.head("POST", "/Tables", content=JSON, extra="Prefer: return-no-content\r\n")
    await link.send_all([with_body(head, json.dumps({"TableName": table}))], Expected(b"204"))
    await link.send_all(loading(site, range(data.size)), Expected(b"202"))
    return site


@contextmanager
def product(folder: Path) -> Iterator[Path]:
    """Run the service in this process, over a temporary PostgreSQL without waits for the disk; yield its socket."""
    os.environ |= {"TABLERO_DATA": str(folder / "data"), "DJANGO_SETTINGS_MODULE": "console.settings"}
    os.environ.pop("DATABASE_URL", None)
    from storage.server import embedded, options, secret
    from storage.server.data_folder import DataFolder

    settings = options.read(os.environ)
    if SHARED in os.environ:  # a run of the tests
        seeded(settings.data)
    fast = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "shared_buffers": "128MB"}
    secret.ensure(settings)
    with embedded.running(settings, purpose="bench", say=progress, settings=fast):
        import console.asgi  # noqa: F401  # sets Django up
        from storage.server import database, heap, migration

        heap.keep_freed()  # as its processes do
        migration.prepare(settings, progress)
        yield DataFolder(settings.data).socket_folder
        database.close_pools()

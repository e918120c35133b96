"""A link between two processes: it forwards TCP connections, late, not at all, or hangs."""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
LOCALHOST = "127.0.0.1"


class Proxy:
    """Forwards connections to a port of this machine; ``delay`` is in seconds, for each direction."""

    def __init__(self, target: int, *, delay: float = 0.0) -> None:
        self.delay = delay
        self.port = 0
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._flows = asyncio.Event()
        self._flows.set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Reset all connections and refuse new ones."""
        self._do(self._cut())

    def hang(self) -> None:
        """Keep connections open and accept new ones, but forward nothing, as when packets are lost."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def mend(self) -> None:
        """Forward again, first of all what was held back."""
        self._loop.call_soon_threadsafe(self._flows.set)
        if self._server is None:
            self._do(self._listen())

    def _do(self, task: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(60)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._forward, LOCALHOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            _reset(writer)

    async def _end(self) -> None:
        await self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target_reader, target_writer = await asyncio.open_connection(LOCALHOST, self._target)
        except OSError:
            _reset(writer)
            return
        writers = {writer, target_writer}
        self._writers |= writers
        try:
            await asyncio.gather(self._pump(reader, target_writer), self._pump(target_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass  # either end, or a cut, ends both
        finally:
            self._writers -= writers
            for each in writers:
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        delivery = asyncio.create_task(self._deliver(queue, writer))
        try:
            while data := await reader.read(1 << 16):
                queue.put_nowait((self._loop.time() + self.delay, data))
            queue.put_nowait((self._loop.time() + self.delay, b""))
            await delivery
        finally:
            delivery.cancel()
            with suppress(OSError, asyncio.CancelledError):
                await delivery

    async def _deliver(self, queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        """Write what came when it is due; nothing means the end of this direction."""
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            await self._flows.wait()
            if not data:
                with suppress(OSError):
                    writer.write_eof()
                return
            writer.write(data)
            await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()

"""Both flavours of the Python SDK behind one synchronous face, so that each test speaks to both."""

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import Any

from azure.core.async_paging import AsyncItemPaged
from azure.data import tables
from azure.data.tables import aio


@dataclass
class Synchronous:
    """`azure.data.tables` as it is."""

    opened: list[Any] = field(default_factory=list)

    def open_service(self, constructor: str | None, *args: Any, **options: Any) -> Any:
        return self._open(tables.TableServiceClient, constructor, args, options)

    def open_table(self, constructor: str | None, *args: Any, **options: Any) -> Any:
        return self._open(tables.TableClient, constructor, args, options)

    def close(self) -> None:
        for client in self.opened:
            client.close()

    def _open(self, kind: Any, constructor: str | None, args: Any, options: Any) -> Any:
        client = construct(kind, constructor)(*args, **options)
        self.opened.append(client)
        return client


@dataclass
class Asynchronous:
    """`azure.data.tables.aio` on an event loop of its own, which runs whenever a test waits for something."""

    # a factory, because the default would become the current loop of pytest's thread
    runner: asyncio.Runner = field(
        default_factory=lambda: asyncio.Runner(loop_factory=asyncio.new_event_loop)
    )
    opened: list[Any] = field(default_factory=list)

    def open_service(self, constructor: str | None, *args: Any, **options: Any) -> Any:
        return self._open(aio.TableServiceClient, constructor, args, options)

    def open_table(self, constructor: str | None, *args: Any, **options: Any) -> Any:
        return self._open(aio.TableClient, constructor, args, options)

    def close(self) -> None:
        for client in self.opened:
            self.runner.run(client.close())
        self.runner.close()

    def _open(self, kind: Any, constructor: str | None, args: Any, options: Any) -> Any:
        client = construct(kind, constructor)(*args, **options)
        self.opened.append(client)
        return Waiting(client, self.runner)


class Waiting:
    """An asynchronous client whose methods wait for their results."""

    def __init__(self, client: Any, runner: asyncio.Runner):
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._client, name)
        return self._waiting(member) if callable(member) else member

    def _waiting(self, method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            result: Any = method(*args, **options)
            if inspect.iscoroutine(result):
                result = self._runner.run(result)
            return self._adopt(result)

        return call

    def _adopt(self, result: Any) -> Any:
        if isinstance(result, AsyncItemPaged):
            return WaitingItems(result, self._runner)
        if isinstance(result, aio.TableClient):
            return Waiting(result, self._runner)
        return result


class WaitingItems:
    """The items of a query, or its pages."""

    def __init__(self, items: Any, runner: asyncio.Runner):
        self._items = items
        self._runner = runner

    def __iter__(self) -> "WaitingItems":
        return self

    def __next__(self) -> Any:
        try:
            return self._runner.run(self._items.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def by_page(self, continuation_token: Any = None) -> "WaitingPages":
        return WaitingPages(self._items.by_page(continuation_token), self._runner)


class WaitingPages(WaitingItems):
    def __next__(self) -> Any:
        return self._runner.run(collect(super().__next__()))

    @property
    def continuation_token(self) -> Any:
        return self._items.continuation_token


async def collect(page: Any) -> list[Any]:
    return [item async for item in page]


def construct(kind: Any, constructor: str | None) -> Any:
    return getattr(kind, constructor) if constructor else kind

"""Control operations beside the event loop."""

import asyncio
import contextlib
import threading
from contextlib import AsyncExitStack, ExitStack, aclosing

import pytest
from asgiref.sync import ThreadSensitiveContext
from django.db import connection

from storage.core.quotas import DOWNLOADS
from storage.models import Account
from storage.runtime.threads import (
    _MOST_DOWNLOADS,
    Download,
    TooManyDownloads,
    in_background,
    in_probe_thread,
    in_thread,
)
from storage.server.database import POOL

pytestmark = pytest.mark.django_db(transaction=True)


async def test_gives_or_raises_what_the_operation_does():
    assert await in_thread(sorted, [1, 3, 2], reverse=True) == [3, 2, 1]
    assert await in_thread(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await in_thread(divmod, 7, 0)


async def test_many_operations_share_few_connections_even_if_they_fail():
    def fail():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    for _ in range(20):
        with pytest.raises(Exception, match="division by zero"):
            await in_thread(fail)

    assert await asyncio.gather(*(in_thread(Account.objects.count) for _ in range(50))) == [0] * 50


def occupy(pool_size, exhausted, done):
    """Take all connections of the console's pool, as views that take long."""
    with ExitStack() as stack:
        for _ in range(pool_size):
            taken = stack.enter_context(contextlib.closing(connection.copy()))
            taken.ensure_connection()
        exhausted.set()
        done.wait(60)


async def test_needs_no_connection_of_the_console():
    exhausted, done = threading.Event(), threading.Event()
    console = asyncio.create_task(asyncio.to_thread(occupy, POOL["max_size"], exhausted, done))
    try:
        assert await asyncio.to_thread(exhausted.wait, 60)
        counts = await asyncio.gather(*(in_thread(Account.objects.count) for _ in range(10)))
        assert counts == [0] * 10
    finally:
        done.set()
        await console


async def test_probes_do_not_wait_for_what_others_do():
    done = threading.Event()
    others = [asyncio.create_task(in_thread(done.wait, 60)) for _ in range(20)]
    try:
        assert await in_probe_thread(Account.objects.count) == 0
    finally:
        done.set()
        await asyncio.gather(*others)


def pieces():
    while True:
        yield b"%d" % Account.objects.count()


def without_database():
    while True:
        yield b"piece"


async def begin(number, done):
    """Read the first piece of a download in a thread of its own, as a request has one, and no more."""
    async with ThreadSensitiveContext(), aclosing(aiter(Download(pieces(), f"reader {number}"))) as content:
        assert await anext(content) == b"0"
        done.release()
        await asyncio.Event().wait()


async def test_an_unfinished_download_has_no_connection():
    done = asyncio.Semaphore(0)
    readers = [asyncio.create_task(begin(number, done)) for number in range(POOL["max_size"] + 2)]
    try:
        for _ in readers:
            await done.acquire()
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def test_unfinished_downloads_are_limited():
    async with AsyncExitStack() as stack:
        begun = [aiter(Download(without_database(), "a")) for _ in range(DOWNLOADS.default)]
        for content in begun:
            await stack.enter_async_context(aclosing(content))
            assert await anext(content) == b"piece"
        with pytest.raises(TooManyDownloads):
            Download(without_database(), "a")
        await begun[0].aclose()
        dropped = Download(without_database(), "a")  # never sent
        del dropped
        Download(without_database(), "a")

        others = [
            Download(without_database(), f"b{n}") for n in range(_MOST_DOWNLOADS - DOWNLOADS.default + 1)
        ]
        with pytest.raises(TooManyDownloads):
            Download(without_database(), "c")
        del others


async def test_long_background_work_does_not_delay_other_calls():
    done = threading.Event()
    jobs = [asyncio.create_task(in_background(lambda: done.wait(60))) for _ in range(10)]

    async with asyncio.timeout(60):
        assert await in_thread(Account.objects.count) == 0

    done.set()
    assert await asyncio.gather(*jobs) == [True] * 10

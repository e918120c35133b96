"""Control operations beside the event loop."""

import asyncio
import threading

import pytest
from django.db import connection

from storage.models import Account
from storage.operations.threads import in_background, in_thread

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


async def test_what_takes_long_in_the_background_keeps_nobody_waiting():
    done = threading.Event()
    jobs = [asyncio.create_task(in_background(lambda: done.wait(60))) for _ in range(10)]

    async with asyncio.timeout(30):
        assert await in_thread(Account.objects.count) == 0

    done.set()
    assert await asyncio.gather(*jobs) == [True] * 10

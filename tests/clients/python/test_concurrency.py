"""Many requests of one asynchronous client at once, as applications send them."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError
from azure.data.tables import TableTransactionError
from azure.data.tables.aio import TableClient, TableServiceClient

from tests.live_server import LiveServer

from .conftest import OPTIONS, new_name


@pytest.fixture
async def people(server: LiveServer) -> AsyncIterator[TableClient]:
    async with TableServiceClient.from_connection_string(server.connection_string, **OPTIONS) as service:
        yield await service.create_table(new_name())


def person(row, **properties):
    return {"PartitionKey": "se", "RowKey": f"{row}", **properties}


async def test_inserts_at_once(people):
    await asyncio.gather(*(people.create_entity(person(row, Row=row)) for row in range(100)))

    found = {entity["Row"] async for entity in people.list_entities()}
    assert found == set(range(100))


async def test_lets_one_insert_win(people):
    answers = await asyncio.gather(
        *(people.create_entity(person("ada", Writer=writer)) for writer in range(20)), return_exceptions=True
    )

    winners = [writer for writer, answer in enumerate(answers) if isinstance(answer, dict)]
    assert len(winners) == 1
    assert sum(isinstance(answer, ResourceExistsError) for answer in answers) == 19
    assert (await people.get_entity("se", "ada"))["Writer"] == winners[0]


async def test_loses_no_update(people):
    await people.create_entity(person("ada", Count=0))

    async def increment():
        while True:
            entity = await people.get_entity("se", "ada")
            entity["Count"] += 1
            try:
                return await people.update_entity(entity, match_condition=MatchConditions.IfNotModified)
            except ResourceModifiedError:
                await asyncio.sleep(0)

    await asyncio.gather(*(increment() for _ in range(20)))

    assert (await people.get_entity("se", "ada"))["Count"] == 20


async def test_merges_every_property(people):
    await asyncio.gather(
        *(people.upsert_entity(person("ada", **{f"P{number}": number})) for number in range(50))
    )

    expected = person("ada", **{f"P{number}": number for number in range(50)})
    assert await people.get_entity("se", "ada") == expected


async def test_keeps_transactions_apart(people):
    """Of transactions that insert the same entity all or nothing is stored."""

    def transaction(writer):
        return [("create", person(f"{writer}-{number}")) for number in range(3)] + [
            ("create", person("shared"))
        ]

    answers = await asyncio.gather(
        *(people.submit_transaction(transaction(writer)) for writer in range(10)), return_exceptions=True
    )

    winners = [writer for writer, answer in enumerate(answers) if isinstance(answer, list)]
    assert len(winners) == 1
    assert {answer.index for answer in answers if isinstance(answer, TableTransactionError)} == {3}
    rows = {entity["RowKey"] async for entity in people.list_entities()}
    assert rows == {f"{winners[0]}-{number}" for number in range(3)} | {"shared"}


async def test_lists_while_others_write(people):
    for row in range(20):
        await people.create_entity(person(f"{row:02}"))

    async def read():
        return [entity["RowKey"] async for entity in people.list_entities(results_per_page=3)]

    async def write():
        for row in range(100, 120):
            await people.create_entity(person(row))

    found, _ = await asyncio.gather(read(), write())

    assert found == sorted(set(found))
    assert {f"{row:02}" for row in range(20)} <= set(found)

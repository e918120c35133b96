"""Pages that end early: a client that follows their tokens sees each entity once."""

import asyncio
import json
import random
import re
from urllib.parse import quote, urlencode

import pytest

from storage.core.rehearsals import PageCut
from storage.domain.values.kinds import AccountKind
from tests.faults.connection import Change, write_batch
from tests.protocol.test_table_service import ACCOUNT, JSON
from tests.rehearsal.rehearsing import MARK, asking, exchanges, rehearsing, start, stop

pytestmark = pytest.mark.django_db(transaction=True)

ANYWHERE = {"name": "anywhere", "effect": "short-page", "empty": 0.4}
AT_PARTITION = {"name": "partition", "effect": "short-page", "at": "partition", "empty": 0.0}
MOST_PAGES = 400
TOKENS = ("NextPartitionKey", "NextRowKey", "NextTableName")
LONG = "k" * 200 + "é'% +&"  # the key of a position has to survive its encoding in a token


def options(parameters, token):
    given = {**parameters, **token}
    return f"?{urlencode(given, quote_via=quote)}" if given else ""


async def follow(send, path, headers=JSON, **parameters):
    """Yield the answers of a query and its items, page by page."""
    token = {}
    for _ in range(MOST_PAGES):
        reply = await send("GET", path + options(parameters, token), headers=headers)
        assert reply.status == 200, reply
        yield reply, reply.json["value"]
        named = {name: reply.headers.get(f"x-ms-continuation-{name}") for name in TOKENS}
        token = {name: value for name, value in named.items() if value is not None}
        if not token:
            return
    raise AssertionError("the pages do not end")


async def read_all(send, path, headers=JSON, **parameters):
    pages = [page async for _, page in follow(send, path, headers, **parameters)]
    return [item for page in pages for item in page], pages


async def insert(send, table, keys, **properties):
    """Insert entities of one partition."""
    changes = [Change("POST", table, key, properties) for key in keys]
    boundary, body = write_batch(ACCOUNT, changes)
    headers = {"Content-Type": f"multipart/mixed; boundary={boundary.decode()}"}
    reply = await send("POST", "/$batch", body, headers)
    assert b"HTTP/1.1 4" not in reply.body, reply.body


async def fill(send, table, partitions, rows):
    assert (await send("POST", "/Tables", {"TableName": table})).status == 201
    for number in range(partitions):
        keys = [(f"{number}{LONG}", f"{row:02}{LONG}") for row in range(rows)]
        await insert(send, table, keys, N=number)
    return [(f"{number}{LONG}", f"{row:02}{LONG}") for number in range(partitions) for row in range(rows)]


def keys_of(entities):
    return [(it["PartitionKey"], it["RowKey"]) for it in entities]


@pytest.mark.parametrize("kind", [AccountKind.STORAGE, AccountKind.COSMOS])
async def test_the_tokens_of_short_pages_lead_to_each_entity_once(kind):
    async with rehearsing(kind) as (_, send):
        keys = await fill(send, "people", 4, 12)
        for number in range(5):
            assert (await send("POST", "/Tables", {"TableName": f"other{number}"})).status == 201
        rehearsal = await start(AT_PARTITION | {"when": {"share": 0.3}}, ANYWHERE | {"when": {"share": 0.9}})
        entities, pages = await read_all(send, "/people()")
        assert keys_of(entities) == keys
        assert [] in pages
        entities, pages = await read_all(send, "/people()", **{"$top": 5})
        assert keys_of(entities) == keys
        assert max(map(len, pages)) == 5
        entities, _ = await read_all(send, "/people()", **{"$filter": "N gt 0 and N lt 3"})
        assert keys_of(entities) == [key for key in keys if key[0][0] in "12"]
        entities, _ = await read_all(send, "/people()", **{"$select": "RowKey"})
        assert [it["RowKey"] for it in entities] == [key[1] for key in keys]
        entities, pages = await read_all(send, "/Tables")
        assert [it["TableName"] for it in entities] == [*(f"other{number}" for number in range(5)), "people"]
        assert len(pages) > 2
        await stop(rehearsal)
        recorded = await exchanges(rehearsal)
    assert recorded[0]["next_token"] == recorded[1]["token"]
    assert [it["entities"] for it in recorded if it["operation"] == "QueryTables"] == [*map(len, pages)]
    assert {rule for it in recorded for rule in it.get("rules", ())} == {"partition", "anywhere"}


async def test_pages_of_the_past_and_of_a_batch_end_early_too():
    async with rehearsing() as (_, send):
        keys = await fill(send, "people", 2, 10)
        moment = (await send("GET", "/people()")).json["value"][-1]["Timestamp"]
        await insert(send, "people", [(f"0{LONG}", "later")])
        await start(ANYWHERE)
        entities, pages = await read_all(send, "/people()", {**JSON, "x-tablero-as-of": moment})
        assert keys_of(entities) == keys
        assert len(pages) > 2
        token, seen = {}, []
        for _ in range(MOST_PAGES):
            part = (
                f"--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
                f"GET http://127.0.0.1/{ACCOUNT}/people(){options({'$filter': 'N eq 1'}, token)} HTTP/1.1\r\n"
                "Accept: application/json;odata=nometadata\r\n\r\n\r\n--b--\r\n"
            )
            reply = await send(
                "POST", "/$batch", part.encode(), {"Content-Type": "multipart/mixed; boundary=b"}
            )
            text = reply.body.decode()
            seen += json.loads(re.search(r"^\{.*\}", text, re.MULTILINE)[0])["value"]
            named = {name: re.search(rf"x-ms-continuation-{name}: (\S+)", text) for name in TOKENS}
            token = {name: match[1] for name, match in named.items() if match}
            if not token:
                break
        assert keys_of(seen) == [key for key in keys if key[0][0] == "1"]
        last = (await exchanges())[-2]
        assert (last["operation"], last["table"], "applied" in last) == ("QueryEntities", "people", False)


async def test_entities_that_exist_throughout_are_seen_once_under_writes():
    chance = random.Random(5)
    async with rehearsing() as (_, send):
        keys = await fill(send, "people", 3, 16)
        kept = set(keys[::2])
        ended = asyncio.Event()
        await start(ANYWHERE)

        async def write():
            while not ended.is_set():
                key = (
                    chance.choice(keys)[0],
                    f"{chance.choice(range(16)):02}{chance.choice(('', LONG, LONG))}",
                )
                path = f"/people(PartitionKey='{quote(key[0].replace(chr(39), chr(39) * 2), safe='')}'"
                path += f",RowKey='{quote(key[1].replace(chr(39), chr(39) * 2), safe='')}')"
                method = "PUT" if key in kept else chance.choice(("PUT", "DELETE"))
                headers = JSON if method == "PUT" else {**JSON, "If-Match": "*"}
                assert (await send(method, path, {"N": 5}, headers)).status in (204, 404)

        writing = [asyncio.create_task(write()) for _ in range(2)]
        for _ in range(6):
            entities, pages = await read_all(send, "/people()", **{"$top": chance.randint(2, 20)})
            seen = keys_of(entities)
            assert seen == sorted(set(seen))
            assert kept <= set(seen)
            assert len(pages) > 3
        ended.set()
        await asyncio.gather(*writing)


async def test_a_page_asked_for_by_each_request_still_gets_further():
    async with rehearsing() as (_, send):
        keys = await fill(send, "people", 1, 9)
        asked = asking("short-page; empty=0.9")
        answers = [(reply, page) async for reply, page in follow(send, "/people()", asked)]
    assert [len(page) for _, page in answers] == [0, 5, 2, 1, 1]
    assert keys_of([item for _, page in answers for item in page]) == keys
    # the last one had a single entity, and is not marked, as nothing was done to it
    assert [reply.headers.get(MARK) for reply, _ in answers] == ["short-page"] * 4 + [None]


@pytest.mark.parametrize("at_partition", [False, True])
def test_only_an_empty_cut_makes_no_progress(at_partition):
    for partitions in (["a"], ["a", "a", "b"], ["a", "b", "b", "c"], ["a"] * 1000):
        lengths = {PageCut(place / 97, at_partition=at_partition).length(partitions) for place in range(97)}
        assert lengths <= set(range(1, max(2, len(partitions))))
        assert PageCut(0.9, is_empty=True).length(partitions) == 0
    assert {PageCut(place / 9, at_partition=True).length(["a", "b", "b", "c"]) for place in range(9)} == {
        1,
        3,
    }

"""Transactions: every operation, all or nothing, and errors the SDK can tell by class and index."""

import os
import re
from itertools import cycle, product
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import RequestTooLargeError, TableTransactionError, TransactionOperation, UpdateMode

from .conftest import BOTH, LARGE_BODIES, code_of

ETAG = re.compile(r"W/\"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,6}[1-9]|\.[1-9])?Z'\"")
STALE = "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\""


def person(row, **properties):
    return {"PartitionKey": "se", "RowKey": row, **properties}


def stored(table):
    return {entity["RowKey"]: entity for entity in table.list_entities()}


@pytest.fixture
def crowd(people):
    """Make a table of five people, who are 1 to 5 years old and live in London."""
    people.submit_transaction(
        [("create", person(row, Age=age, City="London")) for age, row in enumerate("abcde", start=1)]
    )
    return people


@BOTH
def test_all_operations_are_written_together(crowd):
    answers = crowd.submit_transaction(
        [
            (TransactionOperation.CREATE, person("f", Age=6)),
            (TransactionOperation.DELETE, person("a")),
            (TransactionOperation.UPDATE, person("b", Age=10)),
            (TransactionOperation.UPDATE, person("c", Age=100), {"mode": UpdateMode.REPLACE}),
            (TransactionOperation.UPSERT, person("d", Age=10)),
            (TransactionOperation.UPSERT, person("e", Age=10), {"mode": UpdateMode.REPLACE}),
            (TransactionOperation.UPSERT, person("g", Age=7)),
            (TransactionOperation.UPSERT, person("h", Age=8), {"mode": UpdateMode.REPLACE}),
        ]
    )

    result = stored(crowd)
    assert result == {
        "b": person("b", Age=10, City="London"),
        "c": person("c", Age=100),
        "d": person("d", Age=10, City="London"),
        "e": person("e", Age=10),
        "f": person("f", Age=6),
        "g": person("g", Age=7),
        "h": person("h", Age=8),
    }
    etags = [result[row].metadata["etag"] if row in result else None for row in "fabcdegh"]
    assert [answer.get("etag") for answer in answers] == etags


def test_a_transaction_has_100_operations_at_most(people):
    answers = people.submit_transaction([("create", person(f"{number:03}")) for number in range(100)])
    assert len(answers) == len(stored(people)) == 100
    assert all(ETAG.fullmatch(answer["etag"]) for answer in answers)

    with pytest.raises(TableTransactionError) as refusal:
        people.submit_transaction([("upsert", person(f"x{number:03}")) for number in range(101)])
    assert (refusal.value.status_code, code_of(refusal), refusal.value.index) == (400, "InvalidInput", 99)
    limit = "The batch request operation exceeds the maximum 100 changes per change set."
    assert limit in refusal.value.message
    assert len(stored(people)) == 100


def test_special_keys_are_served(people):
    keys = {"PartitionKey": "A'aaa\"_bbbb2%é", "RowKey": '"A\'aaa"_+ ,()=@😀'}
    people.submit_transaction([("create", {**keys, "Step": 0})])
    for step, (name, mode) in enumerate(product(["update", "upsert"], UpdateMode), 1):
        people.submit_transaction([(name, {**keys, "Step": step}, {"mode": mode})])
        assert list(people.list_entities()) == [{**keys, "Step": step}]
    people.submit_transaction([("delete", keys)])
    assert list(people.list_entities()) == []


@BOTH
@LARGE_BODIES
def test_values_may_look_like_the_syntax_of_a_batch(people):
    texts = [
        "--changeset_x\r\n\r\n",
        "HTTP/1.1 409 Conflict\r\n\r\n{}",
        "\r\n--batch_\r\n--",
        "\x00",
        "\ud800",
        "é😀",
    ]
    entities = [person(f"{number}", Text=text, Data=b"\r\n--") for number, text in enumerate(texts)]
    entities.append(person("large", Data=os.urandom(65536)))

    people.submit_transaction([("create", entity) for entity in entities])

    assert list(people.list_entities()) == entities


def test_an_operation_takes_an_etag(crowd):
    for operation, age in (("update", 9), ("delete", None)):
        etag = crowd.get_entity("se", "a").metadata["etag"]
        condition = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
        assert len(crowd.submit_transaction([(operation, person("a", Age=9), condition)])) == 1
        assert stored(crowd).get("a", {}).get("Age") == age


FAILURES: dict[str, Any] = {
    "EntityAlreadyExists": (409, ("create", person("a"))),
    "ResourceNotFound": (404, ("update", person("nobody"))),
    "UpdateConditionNotSatisfied": (
        412,
        ("update", person("a"), {"etag": STALE, "match_condition": MatchConditions.IfNotModified}),
    ),
    "InvalidDuplicateRow": (400, ("upsert", person("d", Age=9))),
    "PropertyNameInvalid": (400, ("upsert", person("e", **{"a-b": 1}))),
    "PropertyNameTooLong": (400, ("upsert", person("e", **{"a" * 256: 1}))),
    "PropertyValueTooLarge": (400, ("upsert", person("e", Text="x" * 32769))),
    "TooManyProperties": (400, ("upsert", person("e", **{f"P{number}": 1 for number in range(253)}))),
    "InvalidInput": (400, ("upsert", person("e", Flag=("not a bool", "Edm.Boolean")))),
}


def test_a_failure_undoes_everything_and_tells_where(crowd):
    before = stored(crowd)
    for (code, (status, failing)), index in zip(FAILURES.items(), cycle([1, 3]), strict=False):
        operations: list[Any] = [
            ("upsert", person("d", Age=9)),
            ("create", person("x")),
            ("delete", person("b")),
        ]
        operations.insert(index, failing)
        with pytest.raises(TableTransactionError) as refusal:
            crowd.submit_transaction(operations)
        told = refusal.value.index, refusal.value.status_code, code_of(refusal)
        assert told == (index, status, code)
        assert refusal.value.message.startswith(f"{index}:")
        assert stored(crowd) == before, code


@BOTH
@LARGE_BODIES
def test_more_than_4_mib_are_refused(people):
    block = os.urandom(65536)
    operations = [("create", person(f"{number}", A=block, B=block, C=block)) for number in range(50)]

    with pytest.raises(RequestTooLargeError) as refusal:
        people.submit_transaction(operations)

    assert (refusal.value.status_code, code_of(refusal)) == (413, "RequestBodyTooLarge")
    assert stored(people) == {}


@BOTH
def test_a_failure_leaves_the_client_usable(crowd):
    with pytest.raises(HttpResponseError):
        crowd.submit_transaction([("create", person("a"))])

    crowd.submit_transaction([("create", person("z"))])

    assert "z" in stored(crowd)
    with pytest.raises(ResourceNotFoundError):
        crowd.get_entity("se", "nobody")

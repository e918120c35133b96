"""Transactions: every operation, all or nothing, and errors the SDK can tell by class and index."""

import os
import re
from itertools import cycle
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
    for age, row in enumerate("abcde", start=1):
        people.create_entity(person(row, Age=age, City="London"))
    return people


class TestOperations:
    @BOTH
    def test_writes_all_together(self, crowd):
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

    @pytest.mark.parametrize("count", [2, 100])
    def test_takes_up_to_100(self, people, count):
        answers = people.submit_transaction([("create", person(f"{number:03}")) for number in range(count)])

        assert len(answers) == len(stored(people)) == count
        assert all(ETAG.fullmatch(answer["etag"]) for answer in answers)

    @pytest.mark.parametrize("mode", list(UpdateMode))
    @pytest.mark.parametrize("name", ["update", "upsert"])
    def test_serves_special_keys(self, people, name, mode):
        keys = {"PartitionKey": "A'aaa\"_bbbb2%é", "RowKey": '"A\'aaa"_+ ,()=@😀'}
        people.submit_transaction([("create", {**keys, "Step": 1})])

        people.submit_transaction([(name, {**keys, "Step": 2}, {"mode": mode})])

        assert list(people.list_entities()) == [{**keys, "Step": 2}]
        people.submit_transaction([("delete", keys)])
        assert list(people.list_entities()) == []

    @BOTH
    @LARGE_BODIES
    def test_carries_values_that_look_like_its_own_syntax(self, people):
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


class TestConditions:
    @pytest.mark.parametrize("operation", ["update", "delete"])
    def test_takes_an_etag(self, crowd, operation):
        etag = crowd.get_entity("se", "a").metadata["etag"]
        condition = {"etag": etag, "match_condition": MatchConditions.IfNotModified}

        answers = crowd.submit_transaction([(operation, person("a", Age=9), condition)])

        assert len(answers) == 1
        assert stored(crowd).get("a", {}).get("Age") == (9 if operation == "update" else None)


class TestFailures:
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

    @pytest.mark.parametrize(("code", "index"), [*zip(FAILURES, cycle([1, 3]), strict=False)])
    def test_undo_everything_and_tell_where(self, crowd, code, index):
        before = stored(crowd)
        status, failing = self.FAILURES[code]
        operations: list[Any] = [
            ("upsert", person("d", Age=9)),
            ("create", person("x")),
            ("delete", person("b")),
        ]
        operations.insert(index, failing)

        with pytest.raises(TableTransactionError) as refusal:
            crowd.submit_transaction(operations)

        assert refusal.value.index == index
        assert refusal.value.status_code == status
        assert code_of(refusal) == code
        assert refusal.value.message.startswith(f"{index}:")
        assert stored(crowd) == before

    def test_101_operations(self, people):
        with pytest.raises(TableTransactionError) as refusal:
            people.submit_transaction([("create", person(f"{number:03}")) for number in range(101)])

        assert refusal.value.status_code == 400
        assert code_of(refusal) == "InvalidInput"
        assert refusal.value.index == 99
        assert (
            "The batch request operation exceeds the maximum 100 changes per change set."
            in refusal.value.message
        )
        assert stored(people) == {}

    @BOTH
    @LARGE_BODIES
    def test_more_than_4_mib(self, people):
        block = os.urandom(65536)
        operations = [("create", person(f"{number}", A=block, B=block, C=block)) for number in range(50)]

        with pytest.raises(RequestTooLargeError) as refusal:
            people.submit_transaction(operations)

        assert refusal.value.status_code == 413
        assert code_of(refusal) == "RequestBodyTooLarge"
        assert stored(people) == {}

    @BOTH
    def test_leave_the_client_usable(self, crowd):
        with pytest.raises(HttpResponseError):
            crowd.submit_transaction([("create", person("a"))])

        crowd.submit_transaction([("create", person("z"))])

        assert "z" in stored(crowd)
        with pytest.raises(ResourceNotFoundError):
            crowd.get_entity("se", "nobody")

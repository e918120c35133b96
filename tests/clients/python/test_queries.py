"""Lists and queries: parameters of every type, filters, projection, pages and their order."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty

from .conftest import BOTH

GUID = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
OTHER_GUID = UUID("d8da6455-213e-42d9-9b79-3f9149a57833")
NOON = datetime(2026, 2, 3, 12, 0, 0, 123456, tzinfo=UTC)
LOW = {
    "PartitionKey": "se",
    "RowKey": "low",
    "Text": "apple",
    "Flag": False,
    "Count": -5,
    "Big": EntityProperty(2**33, EdmType.INT64),
    "Ratio": 0.5,
    "Moment": NOON,
    "Id": GUID,
    "Data": b"\x00\x01",
}
HIGH = {
    "PartitionKey": "se",
    "RowKey": "high",
    "Text": "zebra",
    "Flag": True,
    "Count": 40,
    "Big": EntityProperty(2**60, EdmType.INT64),
    "Ratio": 1e10,
    "Moment": NOON + timedelta(microseconds=1),
    "Id": OTHER_GUID,
    "Data": b"\x00\x02",
}
BARE = {"PartitionKey": "zz", "RowKey": "bare"}
PARAMETERS = {
    "Text": ("apple", "zebra"),
    "Flag": (False, True),
    "Count": (-5, 40),
    "Big": (2**33, 2**60),
    "Ratio": (0.5, 1e10),
    "Moment": (NOON, NOON + timedelta(microseconds=1)),
    "Id": (GUID, OTHER_GUID),
    "Data": (b"\x00\x01", b"\x00\x02"),
}


@pytest.fixture
def zoo(people):
    """Make a table of three entities: two with a low and a high value of every type, and one without."""
    people.submit_transaction([("create", LOW), ("create", HIGH)])
    people.create_entity(BARE)
    return people


def rows(entities):
    return [entity["RowKey"] for entity in entities]


COMPARISONS: tuple[tuple[str, list[str], list[str]], ...] = (
    ("eq", ["low"], ["high"]),
    ("ne", ["high"], ["low"]),
    ("lt", [], ["low"]),
    ("le", ["low"], ["high", "low"]),
    ("gt", ["high"], []),
    ("ge", ["high", "low"], ["high"]),
)


def test_parameters_of_every_type_are_compared(zoo):
    wrong = []
    for name, (low, high) in PARAMETERS.items():
        for operator, at_low, at_high in COMPARISONS:
            for value, expected in ((low, at_low), (high, at_high)):
                result = rows(zoo.query_entities(f"{name} {operator} @value", parameters={"value": value}))
                wrong += [(name, operator, value, result)] if result != expected else []
    assert wrong == []
    timestamp = zoo.get_entity("se", "low").metadata["timestamp"]
    for operator, number in (("lt", 0), ("gt", 3)):
        parameters = {"then": timestamp - timedelta(hours=1)}
        assert len(rows(zoo.query_entities(f"Timestamp {operator} @then", parameters=parameters))) == number
    pages = zoo.list_entities(select="Text", results_per_page=1).by_page()
    assert [list(page) for page in pages] == [[{"Text": "zebra"}], [{"Text": "apple"}], [{"Text": None}]]


def test_parameters_are_no_way_to_inject(people):
    people.create_entity({"PartitionKey": "foo", "RowKey": "bar1", "IsAdmin": "admin"})
    people.create_entity({"PartitionKey": "foo", "RowKey": "bar2", "IsAdmin": ""})
    admins = "PartitionKey eq @first and IsAdmin eq 'admin'"
    injection = "foo' or RowKey eq 'bar2"

    assert rows(people.query_entities(admins, parameters={"first": "foo"})) == ["bar1"]
    assert rows(people.query_entities(admins.replace("@first", f"'{injection}'"))) == ["bar1", "bar2"]
    assert rows(people.query_entities(admins, parameters={"first": injection})) == []


def test_special_characters_in_keys_are_found(people):
    first = {"PartitionKey": ":@", "RowKey": "+,$", "Chars": "?'/!_^#"}
    second = {"PartitionKey": ":@", "RowKey": "=& ", "Chars": '?"\\{}<>%'}
    people.create_entity(first)
    people.create_entity(second)
    query = "PartitionKey eq @key and RowKey eq @row and Chars eq @chars"

    assert len(list(people.query_entities("PartitionKey eq ':@'"))) == 2
    for entity in (first, second):
        parameters = dict(zip(("key", "row", "chars"), entity.values(), strict=True))
        assert list(people.query_entities(query, parameters=parameters)) == [entity]
    literal = "PartitionKey eq ':@' and RowKey eq '+,$' and Chars eq '?''/!_^#'"
    assert list(people.query_entities(literal)) == [first]


# three partitions, with an empty row key at the start of each
CROWD = [("a", ""), ("a", "1"), ("a", "2"), ("b'%", ""), ("b'%", "é "), ("ü", ""), ("ü", "+")]


@BOTH
def test_pages_continue_from_a_token(people):
    for partition, row in CROWD:
        people.create_entity({"PartitionKey": partition, "RowKey": row})
    results = []
    token = None
    for _ in range(3):
        pages = people.list_entities(results_per_page=3).by_page(continuation_token=token)
        results += [(entity["PartitionKey"], entity["RowKey"]) for entity in next(pages)]
        token = pages.continuation_token
    assert results == CROWD
    assert token is None


def test_pages_hold_1000_at_most(people):
    names = [f"{number:04}" for number in range(1050)]
    for start in range(0, len(names), 100):
        people.submit_transaction(
            [("create", {"PartitionKey": "se", "RowKey": name}) for name in names[start : start + 100]]
        )
    pages = [rows(page) for page in people.list_entities().by_page()]
    assert [len(page) for page in pages] == [1000, 50]
    assert [row for page in pages for row in page] == names

"""Every EDM type: each value comes back as it was sent, with its Python type."""

import math
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty

KEYS = {"PartitionKey": "se", "RowKey": "ada"}
INT64 = [0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
MOMENTS = [
    "2013-08-22T01:12:06.2608595Z", "1601-01-01T00:00:00Z", "1601-01-01T00:00:00.0000001Z",
    "1969-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z",
]  # fmt: skip
VALUES = {
    "boolean": [True, False],
    "int32": [0, 1, -1, 2**31 - 1, -(2**31)],
    "int64": [EntityProperty(value, EdmType.INT64) for value in INT64],
    "double": [
        0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 3.14, 1e16, 1e22, 123456789012345.12, 1e-7, 2.0**53, 5e-324,
        2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, 1e100,
    ],
    "binary": [b"", b" ", b"\x00", bytes(range(256)), b"   Text   ", b"\xff\xfe", bytes(range(256)) * 256],
    "guid": [UUID("c9da6455-213d-42c9-9a79-3e9149a57833"), UUID(int=0), UUID(int=2**128 - 1)],
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_values_come_back_from_a_point_query_and_a_list(people, kind):
    values = {f"Value{number}": value for number, value in enumerate(VALUES[kind])}
    people.create_entity({**KEYS, **values})
    people.upsert_entity({**KEYS, "RowKey": "merged", **values}, mode="merge")
    people.upsert_entity({**KEYS, "RowKey": "replaced", **values}, mode="replace")

    for entity in (people.get_entity("se", "ada"), *people.list_entities()):
        returned = {name: entity[name] for name in values}
        assert returned == values
        assert {type(value) for value in returned.values()} == {type(value) for value in values.values()}


def test_moments_come_back_to_100_nanoseconds(people):
    sent = {f"Value{number}": (text, EdmType.DATETIME) for number, text in enumerate(MOMENTS)}
    people.create_entity({**KEYS, **sent})

    people.update_entity(people.get_entity("se", "ada"), mode="replace")

    stored = people.get_entity("se", "ada")
    assert [stored[name].tables_service_value for name in sent] == MOMENTS

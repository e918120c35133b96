"""Tokens for a part of a table, from one key to another."""

from typing import Any

import pytest
from azure.core.credentials import AzureSasCredential
from azure.data.tables import generate_table_sas

from .access import ALL, HOUR, keys, now
from .conftest import OPTIONS, new_name

KEYS = [(partition, row) for partition in "abc" for row in "123"]
RANGES = [
    ({"start_pk": "b"}, KEYS[3:]),
    ({"end_pk": "b", "end_rk": "2"}, KEYS[:5]),
    ({"start_pk": "a", "start_rk": "2", "end_pk": "b", "end_rk": "2"}, KEYS[1:5]),
    ({"start_pk": "c", "end_pk": "a"}, []),
]


@pytest.fixture(scope="module")
def grid(service):
    """Nine entities, in three partitions."""
    table = service.create_table(new_name())
    for partition in "abc":
        table.submit_transaction([("create", {"PartitionKey": partition, "RowKey": row}) for row in "123"])
    return table


@pytest.fixture
def within(library, server, grid, credential):
    def open_within(**bounds: Any) -> Any:
        token = generate_table_sas(credential, grid.table_name, permission=ALL, expiry=now() + HOUR, **bounds)
        return library.open_table(
            None, server.endpoint, grid.table_name, credential=AzureSasCredential(token), **OPTIONS
        )

    return open_within


def test_a_range_narrows_lists_queries_and_pages(within):
    for bounds, inside in RANGES:
        table = within(**bounds)
        pages = table.list_entities(results_per_page=2).by_page()
        assert keys(table.list_entities()) == inside, bounds
        assert keys(table.query_entities("RowKey eq '2'")) == [key for key in inside if key[1] == "2"]
        assert keys(table.query_entities("PartitionKey eq 'b'")) == [key for key in inside if key[0] == "b"]
        assert keys(entity for page in pages for entity in page) == inside

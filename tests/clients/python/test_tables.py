"""Tables: created, listed and deleted by the SDK, and every way a name is refused."""

import pytest

from .conftest import BOTH, new_name

ENTITY = {"PartitionKey": "se", "RowKey": "ada"}
SENTENCE = "Storage table names must be alphanumeric, cannot begin with a number"
IMPOSSIBLE_NAMES = [
    "1table",
    "aa",
    "a" * 64,
    "a//",
    "my_table",
    "啊齄丂狛狜",
    "a-b",
    "a.b",
    "a b",
    "táble",
    "a$b",
]
OPERATIONS_BY_NAME = {
    "create_table": lambda table: table.create_table(),
    "delete_table": lambda table: table.delete_table(),
    "create_entity": lambda table: table.create_entity(ENTITY),
    "get_entity": lambda table: table.get_entity("se", "ada"),
    "update_entity": lambda table: table.update_entity(ENTITY),
    "replace_entity": lambda table: table.update_entity(ENTITY, mode="replace"),
    "upsert_entity": lambda table: table.upsert_entity(ENTITY),
    "delete_entity": lambda table: table.delete_entity("se", "ada"),
    "submit_transaction": lambda table: table.submit_transaction([("upsert", ENTITY)]),
}


def test_creates_a_missing_table(service):
    name = new_name()

    first = service.create_table_if_not_exists(name)
    first.create_entity(ENTITY)
    again = service.create_table_if_not_exists(name)

    assert again.table_name == first.table_name == name
    assert again.get_entity("se", "ada") == ENTITY


def test_an_invalid_name_gets_the_error_that_the_sdk_explains(service):
    for name in IMPOSSIBLE_NAMES:
        for operation in OPERATIONS_BY_NAME.values():
            with pytest.raises(ValueError, match=SENTENCE):
                operation(service.get_table_client(name))


def test_deletes_a_missing_table_silently(service):
    assert service.delete_table(new_name()) is None
    assert service.get_table_client(new_name()).delete_table() is None


@BOTH
def test_tables_are_listed_in_pages_and_found_by_parameters(service):
    prefix = new_name()
    names = [f"{prefix}{letter}" for letter in "abcde"]
    for name in reversed(names):
        service.create_table(name)
    query = f"TableName ge '{prefix}' and TableName lt '{prefix}z'"

    pages = service.query_tables(query, results_per_page=2).by_page()
    assert [[item.name for item in page] for page in pages] == [names[0:2], names[2:4], names[4:]]
    begun = service.query_tables(query, results_per_page=2).by_page()
    next(begun)
    rest = service.query_tables(query, results_per_page=2).by_page(begun.continuation_token)
    assert [item.name for page in rest for item in page] == names[2:]
    parameters = {"from": names[1], "to": names[2]}
    result = service.query_tables("TableName ge @from and TableName le @to", parameters=parameters)
    assert [item.name for item in result] == names[1:3]

"""Tables: created, listed and deleted by the SDK, and every way a name is refused."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import TableItem

from .conftest import OPTIONS, code_of, new_name

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
OPERATIONS_ON_ENTITIES = {
    "create_entity": OPERATIONS_BY_NAME["create_entity"],
    "get_entity": OPERATIONS_BY_NAME["get_entity"],
    "update_entity": OPERATIONS_BY_NAME["update_entity"],
    "replace_entity": OPERATIONS_BY_NAME["replace_entity"],
    "upsert_entity": OPERATIONS_BY_NAME["upsert_entity"],
    "list_entities": lambda table: list(table.list_entities()),
    "query_entities": lambda table: list(table.query_entities("PartitionKey eq 'se'")),
}


def test_creates_a_table(service):
    name = new_name()

    created = service.create_table(name)

    assert created.table_name == name
    assert listed(service, name) == [name]


def test_creates_a_table_by_its_client(service):
    name = new_name()

    item = service.get_table_client(name).create_table()

    assert isinstance(item, TableItem)
    assert item.name == name
    assert listed(service, name) == [name]


@pytest.mark.parametrize("length", [3, 63])
def test_takes_names_from_3_to_63_characters(service, length):
    name = "z" + new_name().lower().ljust(63, "0")[-length + 1 :]

    assert service.create_table_if_not_exists(name).table_name == name


def test_creates_a_table_unless_it_exists(service):
    name = new_name()

    first = service.create_table_if_not_exists(name)
    first.create_entity(ENTITY)
    again = service.create_table_if_not_exists(name)

    assert again.table_name == first.table_name == name
    assert again.get_entity("se", "ada") == ENTITY


@pytest.mark.parametrize("spelling", [str, str.upper, str.lower])
def test_refuses_a_name_that_is_taken_in_any_case(service, people, spelling):
    with pytest.raises(ResourceExistsError) as refusal:
        service.create_table(spelling(people.table_name))

    assert refusal.value.status_code == 409
    assert code_of(refusal) == "TableAlreadyExists"
    assert "The table specified already exists." in refusal.value.message


def test_finds_a_table_by_its_name_in_any_case(service, people):
    people.create_entity(ENTITY)

    shouted = service.get_table_client(people.table_name.upper())

    assert shouted.get_entity("se", "ada") == ENTITY
    assert [entity["RowKey"] for entity in shouted.list_entities()] == ["ada"]


@pytest.mark.parametrize("name", IMPOSSIBLE_NAMES)
def test_refuses_an_impossible_name_so_that_the_sdk_explains_it(service, name):
    for operation in OPERATIONS_BY_NAME.values():
        with pytest.raises(ValueError, match=SENTENCE):
            operation(service.get_table_client(name))


def test_refuses_an_impossible_name_to_the_service_client(service):
    with pytest.raises(ValueError, match=SENTENCE):
        service.create_table("my_table")
    with pytest.raises(ValueError, match=SENTENCE):
        service.create_table_if_not_exists("my_table")
    with pytest.raises(ValueError, match=SENTENCE):
        service.delete_table("my_table")


@pytest.mark.parametrize(
    ("name", "code"),
    [("my_table", "InvalidResourceName"), ("aa", "OutOfRangeInput"), ("a" * 64, "OutOfRangeInput")],
)
def test_refuses_to_list_a_table_of_an_impossible_name(service, name, code):
    with pytest.raises(HttpResponseError) as refusal:
        list(service.get_table_client(name).list_entities())

    assert refusal.value.status_code == 400
    assert code_of(refusal) == code


@pytest.mark.parametrize("name", ["tables", "Tables"])
def test_refuses_the_reserved_name(service, name):
    with pytest.raises(HttpResponseError) as refusal:
        service.create_table(name)

    assert refusal.value.status_code == 400
    assert code_of(refusal) == "InvalidResourceName"


def test_deletes_a_table(service, people):
    people.create_entity(ENTITY)

    assert service.delete_table(people.table_name) is None

    assert listed(service, people.table_name) == []
    with pytest.raises(ResourceNotFoundError) as missing:
        people.get_entity("se", "ada")
    assert code_of(missing) == "TableNotFound"


def test_deletes_a_table_by_its_client(service, people):
    assert people.delete_table() is None

    assert listed(service, people.table_name) == []


def test_deletes_a_missing_table_silently(service):
    assert service.delete_table(new_name()) is None
    assert service.get_table_client(new_name()).delete_table() is None


def test_a_table_created_again_is_empty(service, people):
    people.create_entity(ENTITY)
    people.delete_table()

    people.create_table()

    assert list(people.list_entities()) == []


@pytest.mark.parametrize("operation", OPERATIONS_ON_ENTITIES)
def test_misses_the_table_of_an_entity(service, operation):
    with pytest.raises(ResourceNotFoundError, match="The table specified does not exist") as missing:
        OPERATIONS_ON_ENTITIES[operation](service.get_table_client(new_name()))

    assert missing.value.status_code == 404


def test_lists_tables(service, people):
    items = list(service.list_tables())

    assert all(isinstance(item, TableItem) for item in items)
    assert people.table_name in [item.name for item in items]


def test_lists_no_table_when_none_matches(service):
    assert list(service.query_tables(f"TableName eq '{new_name()}'")) == []


def test_lists_tables_in_pages(service):
    prefix, names = create_five(service)

    pages = service.query_tables(tables_of(prefix), results_per_page=2).by_page()

    assert [[item.name for item in page] for page in pages] == [names[0:2], names[2:4], names[4:]]


def test_ends_the_list_of_tables_with_a_full_page(service):
    prefix, names = create_five(service)
    four = f"{tables_of(prefix)} and TableName lt '{names[4]}'"

    pages = [list(page) for page in service.query_tables(four, results_per_page=2).by_page()]

    assert [len(page) for page in pages] == [2, 2]


def test_continues_a_list_of_tables(service):
    prefix, names = create_five(service)
    begun = service.query_tables(tables_of(prefix), results_per_page=2).by_page()
    next(begun)

    rest = service.query_tables(tables_of(prefix), results_per_page=2).by_page(begun.continuation_token)

    assert [item.name for page in rest for item in page] == names[2:]


def test_continues_a_list_of_all_tables(service):
    create_five(service)
    begun = service.list_tables(results_per_page=3).by_page()
    first = [item.name for item in next(begun)]

    rest = service.list_tables(results_per_page=1000).by_page(begun.continuation_token)

    names = first + [item.name for page in rest for item in page]
    assert names == [item.name for item in service.list_tables()]
    assert len(set(names)) == len(names)


def test_finds_tables_by_parameters(service):
    _, names = create_five(service)

    found = service.query_tables(
        "TableName ge @from and TableName le @to", parameters={"from": names[1], "to": names[2]}
    )

    assert [item.name for item in found] == names[1:3]


def test_finds_tables_by_alternatives(service):
    _, names = create_five(service)
    any_of_three = " or ".join(f"TableName eq '{name}'" for name in names[:3])

    pages = [list(page) for page in service.query_tables(any_of_three, results_per_page=2).by_page()]

    assert [[item.name for item in page] for page in pages] == [names[:2], names[2:3]]


def test_refuses_a_filter_of_tables_that_is_no_filter(service):
    with pytest.raises(HttpResponseError) as refusal:
        list(service.query_tables("aaa bbb ccc"))

    assert refusal.value.status_code == 400
    assert code_of(refusal) == "InvalidInput"


def test_refuses_pages_of_more_than_1000_tables(service):
    with pytest.raises(HttpResponseError) as refusal:
        list(service.list_tables(results_per_page=1001))

    assert code_of(refusal) == "InvalidInput"


class TestUrlWithTheNameOfATable:
    """A common mistake of users, for which the SDK has a hint when the server answers as the service does."""

    HINT = "Please check your account URL."

    @pytest.fixture
    def mistaken(self, library, server, service):
        name = new_name()
        return library.open_table(
            None, f"{server.endpoint}/{name}", name, credential=service.credential, **OPTIONS
        )

    def test_creates_nothing_while_there_is_no_such_table(self, mistaken):
        with pytest.raises(ResourceNotFoundError) as missing:
            mistaken.create_table()

        assert "The table specified does not exist" in str(missing.value)
        assert self.HINT in str(missing.value)

    def test_creates_nothing_in_a_table(self, mistaken, service):
        service.create_table(mistaken.table_name)

        with pytest.raises(HttpResponseError) as refusal:
            mistaken.create_table()

        assert "The values are not specified for all properties in the entity" in str(refusal.value)
        assert self.HINT in str(refusal.value)

    def test_deletes_nothing(self, mistaken, service):
        service.create_table(mistaken.table_name)

        with pytest.raises(HttpResponseError) as refusal:
            mistaken.delete_table()

        assert "URI does not match number of key properties for the resource" in str(refusal.value)
        assert self.HINT in str(refusal.value)
        assert listed(service, mistaken.table_name) == [mistaken.table_name]


def create_five(service):
    prefix = new_name()
    names = [f"{prefix}{letter}" for letter in "abcde"]
    for name in reversed(names):
        service.create_table(name)
    return prefix, names


def tables_of(prefix):
    return f"TableName ge '{prefix}' and TableName lt '{prefix}z'"


def listed(service, name):
    return [item.name for item in service.query_tables(f"TableName eq '{name}'")]

"""Accounts of the kind cosmos, by an SDK that takes the server for Azure Cosmos DB and by one that does not."""

from datetime import UTC, datetime

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import TableTransactionError, UpdateMode, generate_table_sas

from .access import HOUR, now
from .conftest import OPTIONS, code_of, new_name

ADA = {"PartitionKey": "se", "RowKey": "ada", "Age": 36, "Since": datetime(1852, 11, 27, tzinfo=UTC)}


@pytest.fixture(scope="module", params=["localhost", "127.0.0.1"])
def endpoint(request, cosmos_endpoint):
    return cosmos_endpoint.replace("localhost", request.param)


@pytest.fixture(scope="module")
def key(server, endpoint):
    return AzureNamedKeyCredential(endpoint.rpartition("/")[2], server.key)


@pytest.fixture(scope="module")
def service(library, endpoint, key):
    return library.open_service(None, endpoint, credential=key, **OPTIONS)


def test_tables_have_nearly_free_names(service):
    name = new_name()
    for spelling in (name, name.upper(), f"{name}-orders.2026"):
        service.create_table(spelling)
    listed = [table.name for table in service.query_tables(f"TableName eq '{name}'")]
    assert listed == [name]
    with pytest.raises(ResourceExistsError) as taken:
        service.create_table(name)
    assert code_of(taken) == "TableAlreadyExists"
    with pytest.raises(ValueError, match="Cosmos"):
        service.create_table("a/b")
    for spelling in (name, name.upper(), f"{name}-orders.2026"):
        service.delete_table(spelling)


def test_entities(service, people):
    made = people.create_entity(ADA)
    with pytest.raises(ResourceExistsError):
        people.create_entity(ADA)
    result = people.get_entity("se", "ada")
    assert result == ADA
    assert result.metadata["etag"] == made["etag"]

    people.update_entity({"PartitionKey": "se", "RowKey": "ada", "City": "London"}, UpdateMode.MERGE)
    assert people.get_entity("se", "ada") == {**ADA, "City": "London"}
    with pytest.raises(ResourceModifiedError):
        people.update_entity(
            ADA, UpdateMode.REPLACE, etag=made["etag"], match_condition=MatchConditions.IfNotModified
        )
    people.upsert_entity(ADA, UpdateMode.REPLACE)
    people.upsert_entity({"PartitionKey": "se", "RowKey": "eva", "Age": 7}, UpdateMode.MERGE)
    assert [entity["RowKey"] for entity in people.query_entities("Age lt 30")] == ["eva"]
    pages = people.list_entities(results_per_page=1)
    assert [entity["RowKey"] for entity in pages] == ["ada", "eva"]
    people.delete_entity("se", "ada")
    with pytest.raises(ResourceNotFoundError) as gone:
        people.get_entity("se", "ada")
    assert code_of(gone) == "ResourceNotFound"


def test_refusals(service, people):
    for keys in ({"PartitionKey": "", "RowKey": "r"}, {"PartitionKey": "p", "RowKey": ""}):
        with pytest.raises(HttpResponseError) as empty:
            people.create_entity(keys)
        assert "PropertiesNeedValue" in str(empty.value)
    with pytest.raises(HttpResponseError) as unreadable:
        list(people.query_entities("aaa bbb ccc"))
    assert "Request url is invalid" in str(unreadable.value)


def test_transactions(people):
    people.create_entity(ADA)
    eva = {"PartitionKey": "se", "RowKey": "eva"}
    answers = people.submit_transaction(
        [("create", eva), ("update", {**ADA, "Age": 37}, {"mode": UpdateMode.MERGE})]
    )
    assert [set(answer) >= {"etag"} for answer in answers] == [True, True]
    assert people.get_entity("se", "ada")["Age"] == 37
    with pytest.raises(TableTransactionError) as refused:
        people.submit_transaction([("delete", ADA), ("create", eva)])
    assert (refused.value.index, code_of(refused)) == (1, "EntityAlreadyExists")
    assert people.get_entity("se", "ada")["Age"] == 37


def test_access(library, endpoint, key, people):
    people.create_entity(ADA)
    wrong = AzureNamedKeyCredential(key.named_key.name, "AAAA")
    with pytest.raises(HttpResponseError) as unknown:
        list(library.open_service(None, endpoint, credential=wrong, **OPTIONS).list_tables())
    assert unknown.value.status_code == 401
    token = generate_table_sas(key, people.table_name, permission="r", expiry=now() + HOUR)
    reader = library.open_table(
        None, endpoint, people.table_name, credential=AzureSasCredential(token), **OPTIONS
    )
    assert reader.get_entity("se", "ada") == ADA
    with pytest.raises(HttpResponseError) as refused:
        reader.delete_entity("se", "ada")
    assert refused.value.status_code == 403

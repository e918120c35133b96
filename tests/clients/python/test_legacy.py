"""The SDK of before, `azure-cosmosdb-table`, which applications still use."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from tests.clients.accounts import add_account

from .access import keys, now, person
from .conftest import new_name
from .legacy import (
    AccessPolicy,
    AccountPermissions,
    AzureBatchOperationError,
    AzureHttpError,
    CorsRule,
    EdmType,
    EntityProperty,
    Logging,
    Metrics,
    ResourceTypes,
    RetentionPolicy,
    TableBatch,
    TablePayloadFormat,
    TablePermissions,
    TableService,
    no_retry,
)

# it asks for the time in a way that newer Pythons advise against
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning"),
]

HOUR = timedelta(hours=1)
EVERY_TYPE = {
    "Text": "Grüße €😀",
    "Flag": True,
    "Count": EntityProperty(EdmType.INT32, 36),
    "Big": 2**53 + 1,
    "Ratio": 0.5,
    "Infinite": float("inf"),
    "Moment": datetime(1815, 12, 10, 9, 30, 1, tzinfo=UTC),
    "Id": EntityProperty(EdmType.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833"),
    "Data": EntityProperty(EdmType.BINARY, b"\x00\xff"),
}


@pytest.fixture(scope="module")
def server(server):
    """Return the server with an account of this library's own."""
    return add_account(server)


@pytest.fixture(scope="module")
def service(server):
    endpoints = f"TableEndpoint={server.endpoint};TableSecondaryEndpoint={server.endpoint}-secondary;"
    return ready(TableService(connection_string=endpoints + account(server)))


@pytest.fixture
def people(service):
    name = new_name()
    service.create_table(name, fail_on_exist=True)
    return name


@pytest.fixture
def by_token(server):
    """Return `by_token(token)`, which opens a client that has nothing but a token."""
    return lambda token: ready(
        TableService(connection_string=f"TableEndpoint={server.endpoint};SharedAccessSignature={token}")
    )


@pytest.fixture(autouse=True)
def silent():
    """Silence the library, which logs its own refusals as errors."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def ready(service):
    # a retry would hide a failure of the server
    service.retry = no_retry
    return service


def account(server):
    return f"DefaultEndpointsProtocol=http;AccountName={server.account};AccountKey={server.key};"


def status_of(operation, *arguments, **options):
    with pytest.raises(AzureHttpError) as refusal:
        operation(*arguments, **options)
    return refusal.value.status_code


class TestTables:
    def test_are_created_listed_and_deleted(self, service):
        name = new_name()

        assert service.create_table(name)
        assert not service.create_table(name)
        assert service.exists(name)
        assert name in [table.name for table in service.list_tables()]
        assert service.delete_table(name)
        assert not service.exists(name)
        assert not service.delete_table(name)


class TestEntities:
    def test_come_back_with_every_type(self, service, people):
        service.insert_entity(people, {**person("ada"), **EVERY_TYPE})

        entity = service.get_entity(people, "se", "ada")

        for name, value in EVERY_TYPE.items():
            assert vars_of(entity[name]) == vars_of(value), name
        assert entity["etag"].startswith("W/\"datetime'")
        assert isinstance(entity["Timestamp"], datetime)

    @pytest.mark.parametrize(
        "accept",
        [
            TablePayloadFormat.JSON_NO_METADATA,
            TablePayloadFormat.JSON_MINIMAL_METADATA,
            TablePayloadFormat.JSON_FULL_METADATA,
        ],
    )
    def test_come_in_every_format(self, service, people, accept):
        service.insert_entity(people, person("ada", Age=36))

        (entity,) = service.query_entities(people, filter="Age eq 36L", select="Age", accept=accept)

        assert int(entity["Age"]) == 36

    def test_are_changed(self, service, people):
        etag = service.insert_entity(people, person("ada", Age=36))

        etag = service.update_entity(people, person("ada", City="London"), if_match=etag)
        service.merge_entity(people, person("ada", Age=37), if_match=etag)
        assert values(service, people) == {"ada": {"City": "London", "Age": 37}}

        service.insert_or_merge_entity(people, person("ada", Title="Countess"))
        service.insert_or_merge_entity(people, person("bob", Age=1))
        service.insert_or_replace_entity(people, person("bob", Age=2))
        service.insert_or_replace_entity(people, person("eve", Age=3))
        assert values(service, people) == {
            "ada": {"City": "London", "Age": 37, "Title": "Countess"},
            "bob": {"Age": 2},
            "eve": {"Age": 3},
        }

        service.delete_entity(people, "se", "ada")
        assert set(values(service, people)) == {"bob", "eve"}

    def test_come_in_pages(self, service, people):
        for row in range(5):
            service.insert_entity(people, person(f"{row}"))

        first = service.query_entities(people, num_results=2)
        rest = service.query_entities(people, marker=first.next_marker)

        assert keys(first) == [("se", "0"), ("se", "1")]
        assert keys(rest) == [("se", "2"), ("se", "3"), ("se", "4")]


class TestBatches:
    def test_write_all_together(self, service, people):
        for row in "abcd":
            service.insert_entity(people, person(row, Age=1, City="London"))
        batch = TableBatch()
        batch.insert_entity(person("e", Age=2))
        batch.update_entity(person("a", Age=2))
        batch.merge_entity(person("b", Age=2))
        batch.insert_or_merge_entity(person("c", Age=2))
        batch.insert_or_replace_entity(person("f", Age=2))
        batch.delete_entity("se", "d")

        etags = service.commit_batch(people, batch)

        assert [bool(etag) for etag in etags] == [True] * 5 + [False]
        assert values(service, people) == {
            "a": {"Age": 2},
            "b": {"Age": 2, "City": "London"},
            "c": {"Age": 2, "City": "London"},
            "e": {"Age": 2},
            "f": {"Age": 2},
        }

    def test_write_nothing_if_any_change_fails(self, service, people):
        service.insert_entity(people, person("b"))

        batch = TableBatch()
        batch.insert_entity(person("a"))
        batch.insert_entity(person("b"))

        with pytest.raises(AzureBatchOperationError, match="The specified entity already exists") as refusal:
            service.commit_batch(people, batch)

        assert refusal.value.status_code == 409
        assert refusal.value.code == "EntityAlreadyExists"
        assert set(values(service, people)) == {"b"}


class TestTokens:
    @pytest.fixture
    def token_of(self, service, people):
        """Return `token_of(permission)`, which makes a token for the table, valid for an hour."""
        service.insert_entity(people, person("ada"))
        return lambda permission=None, **options: service.generate_table_shared_access_signature(
            people, permission, **{"expiry": datetime.now(UTC) + HOUR, **options}
        )

    def test_allow_exactly_their_permissions(self, people, by_token, token_of):
        reader = by_token(token_of(TablePermissions.QUERY))

        assert reader.get_entity(people, "se", "ada")["RowKey"] == "ada"
        assert keys(reader.query_entities(people)) == [("se", "ada")]
        assert status_of(reader.delete_entity, people, "se", "ada") == 403
        assert status_of(reader.insert_or_merge_entity, people, person("ada")) == 403

    def test_leave_all_to_a_policy(self, service, people, by_token, token_of):
        policy = AccessPolicy(TablePermissions.QUERY, now() + HOUR, now() - HOUR)
        service.set_table_acl(people, {"reader": policy})
        reader = by_token(token_of(id="reader", expiry=None))
        assert reader.get_entity(people, "se", "ada")["RowKey"] == "ada"

        service.set_table_acl(people)

        assert status_of(reader.get_entity, people, "se", "ada") == 403

    def test_open_the_account(self, service, people, by_token):
        token = service.generate_account_shared_access_signature(
            ResourceTypes(service=True, container=True, object=True),
            AccountPermissions(
                read=True, write=True, delete=True, list=True, add=True, create=True, update=True
            ),
            now() + HOUR,
        )
        client = by_token(token)
        name = new_name()

        assert client.create_table(name)
        client.insert_entity(name, person("ada"))
        assert set(values(client, name)) == {"ada"}
        assert people in [table.name for table in client.list_tables()]
        assert client.get_table_service_properties().hour_metrics.enabled
        assert client.delete_table(name)
        assert status_of(client.get_table_acl, people) == 403


class TestPolicies:
    def test_come_back(self, service, people):
        start, expiry = datetime(2021, 6, 8, 2, 10, 9, tzinfo=UTC), datetime(2999, 12, 31, tzinfo=UTC)

        service.set_table_acl(
            people,
            {
                "all": AccessPolicy("raud", expiry, start),
                "text": AccessPolicy("r", "2999-12-31"),
                "none": AccessPolicy(),
            },
        )

        table_acl = service.get_table_acl(people)
        assert set(table_acl) == {"all", "text", "none"}
        assert (table_acl["all"].start, table_acl["all"].expiry, str(table_acl["all"].permission)) == (
            start,
            expiry,
            "raud",
        )
        assert (table_acl["text"].expiry, str(table_acl["text"].permission)) == (expiry, "r")


class TestProperties:
    @pytest.fixture(autouse=True)
    def as_found(self, service):
        table_service_properties = service.get_table_service_properties()
        yield
        service.set_table_service_properties(
            table_service_properties.logging,
            table_service_properties.hour_metrics,
            table_service_properties.minute_metrics,
            table_service_properties.cors,
        )

    def test_come_back(self, service):
        week = RetentionPolicy(enabled=True, days=7)
        rule = CorsRule(["https://app.example"], ["GET", "PUT"], 60, ["x-ms-*"], ["accept", "x-ms-meta-*"])

        service.set_table_service_properties(
            logging=Logging(read=True, write=True, retention_policy=week),
            hour_metrics=Metrics(enabled=True, include_apis=False, retention_policy=week),
            minute_metrics=Metrics(enabled=True, include_apis=True),
            cors=[rule],
        )

        table_service_properties = service.get_table_service_properties()
        assert (
            table_service_properties.logging.read,
            table_service_properties.logging.delete,
            table_service_properties.logging.retention_policy.days,
        ) == (True, False, 7)
        assert (
            table_service_properties.hour_metrics.include_apis,
            table_service_properties.minute_metrics.include_apis,
        ) == (False, True)
        assert not table_service_properties.minute_metrics.retention_policy.enabled
        assert vars(table_service_properties.cors[0]) == vars(rule)

    def test_are_set_individually(self, service):
        before = service.get_table_service_properties()

        service.set_table_service_properties(minute_metrics=Metrics(enabled=True, include_apis=True))

        table_service_properties = service.get_table_service_properties()
        assert table_service_properties.minute_metrics.enabled
        assert table_service_properties.hour_metrics.enabled == before.hour_metrics.enabled

    def test_have_statistics(self, service):
        stats = service.get_table_service_stats()

        assert stats.geo_replication.status == "live"
        assert stats.geo_replication.last_sync_time


def values(service, table):
    """Return the entities' own properties by RowKey."""
    keys_of_all = {"PartitionKey", "RowKey", "Timestamp", "etag"}
    return {
        entity["RowKey"]: {name: value for name, value in entity.items() if name not in keys_of_all}
        for entity in service.query_entities(table)
    }


def vars_of(value):
    return (value.type, value.value) if isinstance(value, EntityProperty) else value

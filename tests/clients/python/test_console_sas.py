"""Tokens made by the console: with the real SDK, they permit the chosen operations and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from azure.core.credentials import AzureSasCredential
from azure.data.tables import TableAccessPolicy, TableClient, TableServiceClient
from django.test import Client

from console.models import User
from storage.access import policies
from storage.accounts import accounts, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.tables import tables
from tests.live_server import LiveServer

from .access import ALL, HOUR, now, outcome_of, person, refusal_of
from .conftest import OPTIONS, new_name

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse"
NEEDS: dict[str, Callable[[Any], Any]] = {
    "r": lambda table: table.get_entity("se", "old"),
    "a": lambda table: table.create_entity(person("new")),
    "u": lambda table: table.update_entity(person("old")),
    "d": lambda table: table.delete_entity("se", "old"),
}
MISMATCH = (403, "AuthorizationPermissionMismatch")


@pytest.fixture(scope="module")
def stored(server: LiveServer) -> Iterator[Any]:
    """Make a table of the server with some entities and a policy."""
    service = TableServiceClient.from_connection_string(server.connection_string, **OPTIONS)
    with service, closing(service.create_table(new_name())) as table:
        yield table


@pytest.fixture
def make(stored: Any, server: LiveServer, settings: Any) -> Callable[..., str]:
    """Return `make(permissions="r")`, which makes a token in the console with the key of the server's account.

    The console runs here, over an account of the same name and key, so that its signatures are valid there.
    """
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # the usual one takes its time
    account = accounts.add(server.account, NewAccount(sealed_keys.DEVELOPMENT_KEY))
    tables.create(account, stored.table_name)
    partner = SignedIdentifier("partner", AccessPolicy(None, None, "r"))
    policies.replace_by_name(account, stored.table_name.lower(), [partner])
    User.objects.create_user("ada", PASSWORD, is_admin=True)
    client = Client()
    client.post("/ui/login/", {"login": "ada", "password": PASSWORD})

    def make(permissions: str = "r", **fields: Any) -> str:
        sent = {"is_form": "1", "kind": "table", "table": stored.table_name, "expiry": "1h", "label": "x"}
        chosen = {"permissions": list(permissions), "protocol": "https,http", **fields}
        answer = client.post(f"/ui/a/{server.account}/sas/new/", {**sent, **chosen})
        assert answer.status_code == 200, answer.context["form"].errors
        secret: str = answer.context["secrets"][0][2]
        return secret

    return make


@pytest.fixture
def opened(make: Callable[..., str], stored: Any, server: LiveServer) -> Iterator[Callable[..., Any]]:
    """Return `opened("ra")`, which opens the table by a new token."""
    clients = []

    def opened(*arguments: Any, **fields: Any) -> Any:
        credential = AzureSasCredential(make(*arguments, **fields))
        clients.append(TableClient(server.endpoint, stored.table_name, credential=credential, **OPTIONS))
        return clients[-1]

    yield opened
    for client in clients:
        client.close()


def test_s1_exactly_the_operations_chosen(opened: Callable[..., Any], stored: Any) -> None:
    for letters in ("r", "a", "ud", "raud"):
        table = opened(letters)
        for letter in ALL:
            stored.upsert_entity(person("old"))
            stored.delete_entity("se", "new")
            assert outcome_of(NEEDS[letter], table) == (None if letter in letters else MISMATCH)


def test_s1_exactly_the_range_chosen(opened: Callable[..., Any], stored: Any) -> None:
    for partition, row in (("a", "1"), ("b", "1"), ("b", "2"), ("c", "1"), ("d", "1")):
        stored.upsert_entity({"PartitionKey": partition, "RowKey": row})
    table = opened("ra", spk="b", srk="2", epk="c")
    results = [(entity["PartitionKey"], entity["RowKey"]) for entity in table.list_entities()]
    assert results == [("b", "2"), ("c", "1")]
    for key in (("b", "1"), ("d", "1")):
        assert refusal_of(table.get_entity, *key) == (404, "ResourceNotFound")
    outside = {"PartitionKey": "d", "RowKey": "2"}
    assert refusal_of(table.create_entity, outside) == (403, "AuthorizationFailure")


def test_s1_exactly_the_addresses_protocol_and_time_chosen(opened: Callable[..., Any], stored: Any) -> None:
    stored.upsert_entity(person("old"))
    for address in ("127.0.0.1", "127.0.0.0/8"):
        assert outcome_of(NEEDS["r"], opened("r", address=address)) is None
    for address in ("127.0.0.2-127.0.0.9", "10.0.0.0/8"):
        refusal = refusal_of(NEEDS["r"], opened("r", address=address))
        assert refusal == (403, "AuthorizationSourceIPMismatch")
    assert refusal_of(NEEDS["r"], opened("r", protocol="https")) == (403, "AuthorizationProtocolMismatch")
    assert outcome_of(NEEDS["r"], opened("r", start="ago")) is None
    later = (now() + HOUR).strftime("%Y-%m-%dT%H:%M")
    not_yet = opened("r", start="at", start_at=later, expiry="1d")
    assert refusal_of(NEEDS["r"], not_yet) == (403, "AuthenticationFailed")


def test_s1_exactly_the_policy_chosen(opened: Callable[..., Any], stored: Any) -> None:
    stored.upsert_entity(person("old"))
    table = opened("raud", policy="partner")
    assert refusal_of(NEEDS["r"], table) == (403, "AuthenticationFailed")
    stored.set_table_access_policy({"partner": TableAccessPolicy(permission="r")})
    assert outcome_of(NEEDS["r"], table) is None
    assert refusal_of(NEEDS["d"], table) == MISMATCH
    stored.set_table_access_policy({})
    assert refusal_of(NEEDS["r"], table) == (403, "AuthenticationFailed")


def test_s1_a_token_of_the_account(make: Callable[..., str], server: LiveServer, stored: Any) -> None:
    token = make("l", kind="account", levels=["c"])
    with TableServiceClient(server.endpoint, credential=AzureSasCredential(token), **OPTIONS) as service:
        assert stored.table_name in {table.name for table in service.list_tables()}
        assert refusal_of(service.create_table, new_name()) == MISMATCH
        with closing(service.get_table_client(stored.table_name)) as table:
            assert refusal_of(NEEDS["r"], table) == (403, "AuthorizationResourceTypeMismatch")


def test_s1_the_connection_string_is_good(make: Callable[..., str], stored: Any, server: LiveServer) -> None:
    text = f"TableEndpoint={server.endpoint};SharedAccessSignature={make('r')}"
    stored.upsert_entity(person("old"))
    with TableClient.from_connection_string(text, stored.table_name, **OPTIONS) as table:
        assert table.get_entity("se", "old")["RowKey"] == "old"

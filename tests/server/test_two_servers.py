"""Servers on one database, some with two workers, one behind PgBouncer: what changes at one counts at all at once."""

import re
import shlex
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
import requests
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import (
    TableAccessPolicy,
    TableClient,
    TableCorsRule,
    TableServiceClient,
    generate_table_sas,
)

from storage.domain.access.grants import Operation
from tests import pooler
from tests.live_server import ACCOUNT, KEY, ROOT, clean_environment, start_server
from tests.server.requests_in_flight import find_workers
from tests.waiting import wait_for

pytestmark = pytest.mark.long
SECRET = "the secret of both servers"
ROUNDS = 2
CONNECTIONS = 6  # enough to meet both workers


@pytest.fixture(scope="module")
def env(postgres):
    name = f"shared{uuid4().hex[:8]}"
    with psycopg.connect(host=postgres["host"], user="tablero", dbname="postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        url = f"postgresql:///{name}?host={postgres['host']}&user=tablero"
        yield {"DATABASE_URL": url, "TABLERO_SECRET": SECRET}
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def servers(env, scratch):
    """Start two servers at once on the empty database; the second one has two workers, which end with it."""
    every_request_is_slow = {"storage.protocol.table_service": {"_SLOW": 0.0}}  # seconds
    declared = {**env, "AZURITE_ACCOUNTS": f"ada:QUJD:REVG;{ACCOUNT}:{KEY}"}
    with (
        start_server(scratch / "first", env=declared, wait=False, constants=every_request_is_slow) as first,
        start_server(scratch / "second", "--workers", "2", env=declared, wait=False) as second,
    ):
        first.wait_until_ready()
        second.wait_until_ready()
        yield first, second
        workers = find_workers(second)
        assert second.stop() == 0
        assert not any(worker.is_running() for worker in workers)


@pytest.fixture(scope="module")
def first(servers):
    return servers[0]


@pytest.fixture(scope="module")
def second(servers):
    return servers[1]


@pytest.fixture(scope="module")
def behind(require, env, first, scratch):
    """Its lanes use the pooler's sessions, and its console the transactions."""
    require("pgbouncer", "the pooler")
    name = re.search(r"/(\w+)\?", env["DATABASE_URL"])[1]
    with pooler.running(scratch / "pooler of servers", scratch / "unit", name) as pool:
        pooled = {**env, "DATABASE_URL": pool.direct, "TABLERO_POOLER_URL": pool.pooled}
        with start_server(scratch / "behind", "--workers", "2", env=pooled) as live:
            yield live


@pytest.fixture
def table(first):
    with TableServiceClient(first.endpoint, credential=AzureNamedKeyCredential(ACCOUNT, KEY)) as service:
        name = f"people{uuid4().hex[:8]}"
        client = service.create_table(name)
        client.create_entity({"PartitionKey": "p", "RowKey": "r"})
        yield client
        service.delete_table(name)


class Readers:
    """Clients that used a server with one token, each with a connection of its own."""

    def __init__(self, live, table, token):
        self.clients = [
            TableClient(live.endpoint, table, credential=AzureSasCredential(token), retry_total=0)
            for _ in range(CONNECTIONS)
        ]

    def statuses(self):
        return {self._status(client) for client in self.clients}

    @staticmethod
    def _status(client):
        try:
            client.get_entity("p", "r")
        except HttpResponseError as error:
            return error.status_code
        return 200


def token(table, **options):
    return generate_table_sas(AzureNamedKeyCredential(ACCOUNT, KEY), table.table_name, **options)


def policy(permission):
    return TableAccessPolicy(permission=permission, expiry=datetime.now(UTC) + timedelta(hours=1))


def test_servers_that_started_at_once_on_an_empty_database_share_it_and_its_secret(
    env, first, second, scratch
):
    def sdk_of(live, key):
        return TableServiceClient(f"{live.url}/ada", credential=AzureNamedKeyCredential("ada", key))

    with sdk_of(first, "QUJD") as sdk:
        sdk.create_table("shared")
    with sdk_of(second, "REVG") as sdk:
        assert [table.name for table in sdk.list_tables()] == ["shared"]
        sdk.delete_table("shared")
    assert not (scratch / "first" / "database").exists()


def test_a_policy_counts_at_the_other_server_at_once(table, second):
    readers = Readers(second, table.table_name, token(table, policy_id="readers"))
    assert readers.statuses() == {403}

    for _ in range(ROUNDS):
        for name, permission, status in (("readers", "a", 403), ("readers", "r", 200), ("renamed", "r", 403)):
            table.set_table_access_policy({name: policy(permission)})
            assert readers.statuses() == {status}


def test_a_policy_of_a_table_that_was_deleted_opens_no_table_of_its_name(first, second):
    credential = AzureNamedKeyCredential(ACCOUNT, KEY)
    with TableServiceClient(first.endpoint, credential=credential) as service:
        table = service.create_table(f"people{uuid4().hex[:8]}")
        readers = Readers(second, table.table_name, token(table, policy_id="readers"))
        for _ in range(ROUNDS):
            table.set_table_access_policy({"readers": policy("r")})
            table.create_entity({"PartitionKey": "p", "RowKey": "r"})
            assert readers.statuses() == {200}
            table.delete_table()
            table.create_table()
            assert readers.statuses() == {403}
        table.delete_table()


COMMANDS = """
import shlex, sys
import django
django.setup()
from django.core.management import call_command
from storage.server.database import close_pools
for line in sys.stdin:
    call_command("account", *shlex.split(line))
    print("done", flush=True)
close_pools()
"""


@pytest.fixture(scope="module")
def account(env, first, scratch):
    """Return `account("add", "ada")`, which runs the command beside the servers; one process runs all of them."""
    given = {"DJANGO_SETTINGS_MODULE": "console.settings", "TABLERO_DATA": str(scratch / "commands")}
    with subprocess.Popen(
        [sys.executable, "-c", COMMANDS],
        cwd=ROOT,
        env={**clean_environment(), **env, **given},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def account(*arguments):
            process.stdin.write(shlex.join(arguments) + "\n")
            process.stdin.flush()
            said = []
            for line in process.stdout:
                if line == "done\n":
                    return "".join(said)
                said.append(line)
            raise AssertionError(arguments)

        yield account


def test_a_rotated_key_and_its_tokens_are_dead_at_once(account, first, second):
    account("add", "rotating")
    for _ in range(ROUNDS):
        listed = account("list", "--keys")
        key = re.search(r"rotating .*?key1=(\S+)", listed, re.DOTALL)[1]
        credential = AzureNamedKeyCredential("rotating", key)
        with TableServiceClient(f"{first.url}/rotating", credential=credential) as service:
            table = service.create_table_if_not_exists("people")
            table.upsert_entity({"PartitionKey": "p", "RowKey": "r"})
            sas = generate_table_sas(
                credential, "people", permission="r", expiry=datetime.now(UTC) + timedelta(hours=1)
            )
            second.account = "rotating"
            readers = Readers(second, "people", sas)
            second.account = ACCOUNT
            assert readers.statuses() == {200}

            account("rotate", "rotating", "1")

            assert readers.statuses() == {403}
            with pytest.raises(HttpResponseError):
                table.get_entity("p", "r")
    account("remove", "rotating", "--with-tables")


def test_an_account_and_its_keys_are_switched_off_at_once(account, first, second):
    keys = account("add", "switched")
    credential = AzureNamedKeyCredential("switched", re.search(r"key1=(\S+)", keys)[1])
    with TableServiceClient(f"{second.url}/switched", credential=credential, retry_total=0) as service:
        table = service.create_table("people")
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        sas = generate_table_sas(
            credential, "people", permission="r", expiry=datetime.now(UTC) + timedelta(hours=1)
        )
        by_token = TableClient(
            f"{second.url}/switched", "people", credential=AzureSasCredential(sas), retry_total=0
        )
        for off, on, code in (
            ("disable switched", "enable switched", "AccountIsDisabled"),
            ("shared-key switched off", "shared-key switched on", "KeyBasedAuthenticationNotPermitted"),
            ("allow switched 10.0.0.0/8", "allow switched", "AuthorizationFailure"),
        ):
            account(*off.split())
            for client in (table, by_token):
                with pytest.raises(HttpResponseError) as refused:
                    client.get_entity("p", "r")
                assert (refused.value.status_code, refused.value.error_code) == (403, code)
            account(*on.split())
            for client in (table, by_token):
                assert client.get_entity("p", "r")["RowKey"] == "r"
    account("remove", "switched", "--with-tables")


def test_cors_rules_count_at_once(first, second):
    with TableServiceClient(first.endpoint, credential=AzureNamedKeyCredential(ACCOUNT, KEY)) as service:
        for _ in range(ROUNDS):
            service.set_service_properties(cors=[TableCorsRule(["https://example.com"], ["GET"])])
            assert preflights(second) == {200}
            service.set_service_properties(cors=[])
            assert preflights(second) == {403}


def preflights(live):
    headers = {"Origin": "https://example.com", "Access-Control-Request-Method": "GET"}
    statuses = set()
    for _ in range(CONNECTIONS):
        with requests.options(f"{live.endpoint}/people", headers=headers, timeout=60) as response:
            statuses.add(response.status_code)
    return statuses


def test_a_slow_request_is_authorized_again_before_anything_is_done(first, second, table):
    """One that began while its token was good, and ends after that."""
    table.set_table_access_policy({"writers": policy("a")})
    query = token(table, policy_id="writers")
    body = b'{"PartitionKey":"p","RowKey":"late"}'
    head = (
        f"POST /{ACCOUNT}/{table.table_name}?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    credential = AzureNamedKeyCredential(ACCOUNT, KEY)
    with socket.create_connection(("127.0.0.1", first.port), timeout=60) as slow:
        slow.sendall(head.encode())
        assert slow.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"  # it has been authorized
        with TableClient(second.endpoint, table.table_name, credential=credential) as there:
            there.set_table_access_policy({})
        slow.sendall(body)
        answer = slow.recv(65536)

    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"AuthenticationFailed" in answer
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "late")


COUNTED = """
    SELECT coalesce(sum((kind ->> 3)::bigint), 0)
    FROM storage_requestseries, jsonb_array_elements(counts -> 0) AS kind
    WHERE kind ->> 0 = %s AND minutes = 1 AND table_id = 0
"""


def test_requests_are_counted_over_all_servers(env, first, second, table):
    client = TableClient(
        second.endpoint, table.table_name, credential=AzureNamedKeyCredential(ACCOUNT, KEY), retry_total=0
    )
    with psycopg.connect(env["DATABASE_URL"], autocommit=True) as database:

        def counted():
            return database.execute(COUNTED, [Operation.MERGE_ENTITY]).fetchone()[0]

        before = counted()
        for _ in range(7):
            table.update_entity({"PartitionKey": "p", "RowKey": "r"})
            client.update_entity({"PartitionKey": "p", "RowKey": "r"})
        wait_for(lambda: counted() >= before + 14)
        assert counted() == before + 14


def test_servers_stop_writing_when_a_newer_version_upgrades_the_database(env, first, second, table):
    def statuses(change):
        results = set()
        for live in (first, second):
            client = TableClient(
                live.endpoint,
                table.table_name,
                credential=AzureNamedKeyCredential(ACCOUNT, KEY),
                retry_total=0,
            )
            for _ in range(CONNECTIONS):
                try:
                    change(client)
                    results.add(200)
                except HttpResponseError as error:
                    results.add(error.status_code)
        return results

    def become(expected):
        entity = {"PartitionKey": "p", "RowKey": "r"}
        wait_for(lambda: statuses(lambda client: client.upsert_entity(entity)) == expected)

    with psycopg.connect(env["DATABASE_URL"], autocommit=True) as database:
        database.execute("UPDATE storage_databaseversion SET writer = writer + 1")
        become({503})
        assert statuses(lambda client: client.get_entity("p", "r")) == {200}
        database.execute("UPDATE storage_databaseversion SET writer = writer - 1")
        become({200})


def test_a_server_behind_a_pooler_is_one_of_them(first, behind, table):
    with TableServiceClient(behind.endpoint, credential=AzureNamedKeyCredential(ACCOUNT, KEY)) as service:
        own = service.get_table_client(table.table_name)
        own.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": f"{n:03}"}) for n in range(100)])
        assert len(list(own.list_entities(results_per_page=40))) == 101
        assert table.table_name in {it.name for it in service.list_tables(results_per_page=1)}
        reading = token(table, policy_id="readers")
        at_both = [Readers(live, table.table_name, reading) for live in (first, behind)]
        for client, permission, status in (
            (table, "r", 200),
            (own, "a", 403),
            (own, "r", 200),
            (table, "a", 403),
        ):
            client.set_table_access_policy({"readers": policy(permission)})
            assert [readers.statuses() for readers in at_both] == [{status}, {status}]
    with requests.get(f"{behind.url}/ui/readyz", timeout=60) as ready:
        assert ready.status_code == 200
    assert "Traceback" not in "\n".join(behind.output)

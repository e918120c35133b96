import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from .client import Connection, Endpoint, write

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    if url := os.environ.get("TABLE_ENDPOINT"):
        account = os.environ.get("TABLE_ACCOUNT", DEVELOPMENT_ACCOUNT)
        key = os.environ.get("TABLE_KEY", DEVELOPMENT_KEY)
        return Endpoint(url, account, key, foreign="Tablero" not in _server_header(url))
    server = request.getfixturevalue("server")
    return Endpoint(
        server.endpoint, server.account, server.key, foreign=False, distributes=server.distributes
    )


@pytest.fixture(scope="session")
def read_only_endpoint(endpoint: Endpoint, request: pytest.FixtureRequest) -> Endpoint:
    """Make a read-only account whose table People holds one entity."""
    if os.environ.get("TABLE_ENDPOINT"):
        pytest.skip("only who starts the server can make an account read-only")
    server = request.getfixturevalue("server")
    server.change_accounts("add", "readonly", "--key1", endpoint.key)
    made = replace(endpoint, url=f"{server.url}/readonly", account="readonly")
    entity = {"PartitionKey": "p", "RowKey": "r", "x": 1}
    with closing(Connection(made)) as connection:
        for path, content in (("/Tables", {"TableName": "People"}), ("/People", entity)):
            reply = connection.send(write({"line": f"POST {path}", "json": content}, made))
            assert reply is not None
            assert reply.status == 201
    server.change_accounts("read-only", "readonly", "on")
    return made


@pytest.fixture(scope="session")
def cosmos_endpoint(endpoint: Endpoint, request: pytest.FixtureRequest) -> Endpoint:
    """Make an account of the kind cosmos."""
    if os.environ.get("TABLE_ENDPOINT"):
        pytest.skip("only who starts the server can create an account of another kind")
    server = request.getfixturevalue("server")
    server.change_accounts("add", "cosmoswire", "--kind", "cosmos", "--key1", endpoint.key)
    server.change_accounts("rehearsals", "cosmoswire", "on")
    return replace(endpoint, url=f"{server.url}/cosmoswire", account="cosmoswire")


@pytest.fixture(scope="session")
def strict_endpoint(endpoint: Endpoint, request: pytest.FixtureRequest) -> Endpoint:
    """Make an account that is as strict as Azure."""
    server = request.getfixturevalue("server")
    server.change_accounts("add", "strictwire", "--key1", endpoint.key)
    server.change_accounts("strictness", "strictwire", "azure")
    return replace(endpoint, url=f"{server.url}/strictwire", account="strictwire")


def _server_header(url: str) -> str:
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=60)) as connection:
        connection.request("GET", parts.path)
        return connection.getresponse().getheader("Server", "")


@pytest.fixture(scope="session")
def connection(endpoint: Endpoint) -> Iterator[Connection]:
    connection = Connection(endpoint)
    yield connection
    connection.close()

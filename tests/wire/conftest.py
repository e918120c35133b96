import os
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from .client import Connection, Endpoint

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    if url := os.environ.get("TABLE_ENDPOINT"):
        account = os.environ.get("TABLE_ACCOUNT", DEVELOPMENT_ACCOUNT)
        key = os.environ.get("TABLE_KEY", DEVELOPMENT_KEY)
        return Endpoint(url, account, key, foreign="Tablero" not in _server_header(url))
    server = request.getfixturevalue("server")
    return Endpoint(server.endpoint, server.account, server.key, foreign=False)


def _server_header(url: str) -> str:
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=10)) as connection:
        connection.request("GET", parts.path)
        return connection.getresponse().getheader("Server", "")


@pytest.fixture(scope="session")
def connection(endpoint: Endpoint) -> Iterator[Connection]:
    connection = Connection(endpoint)
    yield connection
    connection.close()

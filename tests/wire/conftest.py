import os
from collections.abc import Iterator

import pytest

from .client import Connection, Endpoint

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    if url := os.environ.get("TABLE_ENDPOINT"):
        account = os.environ.get("TABLE_ACCOUNT", DEVELOPMENT_ACCOUNT)
        return Endpoint(url, account, os.environ.get("TABLE_KEY", DEVELOPMENT_KEY), foreign=True)
    server = request.getfixturevalue("server")
    return Endpoint(server.endpoint, server.account, server.key, foreign=False)


@pytest.fixture(scope="session")
def connection(endpoint: Endpoint) -> Iterator[Connection]:
    connection = Connection(endpoint)
    yield connection
    connection.close()

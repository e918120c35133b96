from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import generate_table_sas

from tests.clients.accounts import REHEARSAL, add_account
from tests.clients.python.libraries import Asynchronous, Synchronous
from tests.live_server import LiveServer

from .access import ADA, HOUR, now

# a retry would hide a failure of the server, unless failures are rehearsed
OPTIONS: dict[str, Any] = {} if REHEARSAL else {"retry_total": 0}
# the asynchronous library sends large bodies in a way its own transport advises against
LARGE_BODIES = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


# the asynchronous library has a transport, pages, batches and credentials of its own
BOTH = pytest.mark.parametrize(
    "library", [Synchronous, Asynchronous], ids=["sync", "aio"], indirect=True, scope="module"
)


@pytest.fixture(scope="session")
def server(server: LiveServer) -> LiveServer:
    """Return the server with an account of this SDK's own."""
    return add_account(server)


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Open the synchronous library; a test marked with ``BOTH`` runs with the asynchronous one, too."""
    library = getattr(request, "param", Synchronous)()
    yield library
    library.close()


@pytest.fixture(scope="module")
def service(library: Any, server: LiveServer) -> Any:
    """Open a TableServiceClient of the account."""
    return library.open_service("from_connection_string", server.connection_string, **OPTIONS)


@pytest.fixture
def new_table(service: Any) -> Callable[[], Any]:
    return lambda: service.create_table(new_name())


@pytest.fixture
def people(new_table: Callable[[], Any]) -> Any:
    """Return a TableClient of an empty table."""
    return new_table()


@pytest.fixture
def credential(server: LiveServer) -> AzureNamedKeyCredential:
    return AzureNamedKeyCredential(server.account, server.key)


@pytest.fixture
def stored(people: Any) -> Any:
    """Return a table that holds one entity."""
    people.create_entity(ADA)
    return people


@pytest.fixture
def sas_of(credential: AzureNamedKeyCredential, stored: Any) -> Callable[..., str]:
    """Return `sas_of(permission="r")`, which makes a token for the table, by default for an hour."""
    return lambda **options: generate_table_sas(
        credential, stored.table_name, **{"expiry": now() + HOUR, **options}
    )


@pytest.fixture
def open_table(library: Any, server: LiveServer, stored: Any) -> Callable[[str], Any]:
    """Return `open_table(token)`, which opens the table by a token."""
    return lambda token: library.open_table(
        None, server.endpoint, stored.table_name, credential=AzureSasCredential(token), **OPTIONS
    )


@pytest.fixture
def opened(sas_of: Callable[..., str], open_table: Callable[[str], Any]) -> Callable[..., Any]:
    """Return `opened(permission="r")`, which opens the table by a new token."""
    return lambda **options: open_table(sas_of(**options))


def new_name() -> str:
    return f"People{uuid4().hex}"


def code_of(refusal: pytest.ExceptionInfo[Any]) -> Any:
    """Return the service's code of an error, which the SDK adds to its exceptions without declaring it."""
    return refusal.value.error_code

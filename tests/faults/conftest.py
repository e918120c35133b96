from uuid import uuid4

import pytest

from storage.server.data_folder import DataFolder
from tests.faults.crowd import Crowd
from tests.faults.stalled import Stalled
from tests.live_server import start_server


@pytest.fixture(scope="package")
def server(scratch):
    """A server of this folder's own: what it is fed must not disturb other tests, and what it logs is looked at."""
    with start_server(scratch / "faults") as live:
        yield live
        assert not [line for line in live.output if "Traceback" in line], "\n".join(live.output[-60:])


@pytest.fixture(scope="package")
def stalled(server):
    """Opened before other tests need their time, which is long enough for the server to lose its patience."""
    stalled = Stalled(server)
    yield stalled
    stalled.end()


@pytest.fixture(scope="package")
def two_workers(scratch):
    with start_server(scratch / "workers", "--workers", "2") as live:
        yield live
        assert not [line for line in live.output if "Traceback" in line], "\n".join(live.output[-60:])


@pytest.fixture(scope="package")
def two_servers(scratch):
    """Two servers on one database, the second with no database of its own."""
    secret = {"TABLERO_SECRET": uuid4().hex}
    data = scratch / "shared"
    with start_server(data, env=secret) as first:
        url = f"postgresql:///tablero?host={DataFolder(data).socket_folder}&user=tablero"
        with start_server(scratch / "second", env={**secret, "DATABASE_URL": url}) as second:
            yield first, second


@pytest.fixture
def table():
    """A name that no other test has used."""
    return f"t{uuid4().hex}"


@pytest.fixture(params=["one server", "two workers", "two servers"])
def crowd(request):
    match request.param:
        case "one server":
            return Crowd([request.getfixturevalue("server")])
        case "two workers":
            return Crowd([request.getfixturevalue("two_workers")])
        case _:
            return Crowd(request.getfixturevalue("two_servers"))

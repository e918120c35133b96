from contextlib import contextmanager
from uuid import uuid4

import pytest

from storage.server.data_folder import DataFolder
from tests.faults.crowd import Crowd
from tests.live_server import start_server
from tests.seeds import seeded


@pytest.fixture(scope="package")
def started():
    """Return a list of every server that `start` has started."""
    return []


@pytest.fixture(scope="package")
def start(started):
    """`with start(data, *arguments) as live`: a server whose log is looked at after each test."""

    @contextmanager
    def start(data, *arguments, **options):
        with start_server(data, *arguments, **options) as live:
            started.append(live)
            yield live

    return start


@pytest.fixture(autouse=True)
def quiet(started):
    """Check that no act of a client, nor the death of a process, is an unexpected error of the server."""
    before = {id(live): len(live.output) for live in started}
    yield
    logged = [line for live in started for line in live.output[before.get(id(live), 0) :]]
    assert not any("Traceback" in line for line in logged), "\n".join(logged[-40:])


@pytest.fixture(scope="package")
def server(start, scratch):
    """Start a server for this folder, so that hostile input does not disturb other tests."""
    with start(seeded(scratch / "faults")) as live:
        yield live


@pytest.fixture(scope="package")
def two_workers(start, scratch):
    with start(seeded(scratch / "workers"), "--workers", "2") as live:
        yield live


@pytest.fixture(scope="package")
def two_servers(start, scratch):
    """Start two servers on one database; the second has no database of its own."""
    data = seeded(scratch / "shared")
    secret = {"TABLERO_SECRET": (data / "secret").read_text().strip()}
    with start(data) as first:
        url = f"postgresql:///tablero?host={DataFolder(data).socket_folder}&user=tablero"
        with start(scratch / "shared by", env={**secret, "DATABASE_URL": url}) as second:
            yield first, second


@pytest.fixture
def table():
    """Return a name that no other test has used."""
    return f"t{uuid4().hex}"


@pytest.fixture(params=["two workers", "two servers"])
def crowd(request):
    """Return two processes with as many clients each as one alone would have."""
    if request.param == "two workers":
        return Crowd([request.getfixturevalue("two_workers")])
    return Crowd(request.getfixturevalue("two_servers"))

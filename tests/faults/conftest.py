import pytest

from tests.live_server import start_server


@pytest.fixture(scope="package")
def server(scratch):
    """A server of this folder's own: what it is fed must not disturb other tests, and what it logs is looked at."""
    with start_server(scratch / "faults") as live:
        yield live

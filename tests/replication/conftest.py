import pytest

from tests.replication.world import world as running_world


@pytest.fixture(scope="module")
def world(scratch):
    """Run a primary, two replicas and a server; each test repairs its damage."""
    with running_world(scratch / "world") as made:
        yield made
        logged = [line for line in made.server.output if "Traceback" in line]
        assert not logged, "\n".join(made.server.output[-60:])

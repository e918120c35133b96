"""Configurations for operators, by the folder that the documents lead to."""

import shutil
from uuid import uuid4

import pytest

from tests.live_server import ROOT
from tests.seeds import seeded
from tests.service import sandbox

SERVICE = ROOT / "docs" / "service"


@pytest.fixture
def limits():
    """Skip a test where the machine does not let us make mounts and filters."""
    if not sandbox.can_be_limited():
        pytest.skip("this machine lets us make no mounts or filters of system calls")


needs_limits = pytest.mark.usefixtures("limits")


@pytest.fixture
def folder_of_nobody(scratch):
    """Make a folder of an unprivileged user, with the data of a stopped server, for servers that do not run as root."""
    folder = scratch / uuid4().hex[:8]
    folder.mkdir(mode=0o700)
    for path in (folder, seeded(folder / "data"), *folder.rglob("*")):
        shutil.chown(path, "nobody")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)

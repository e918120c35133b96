"""Configurations for operators, by the folder that the documents lead to."""

import shutil
from uuid import uuid4

import pytest

from tests.live_server import ROOT
from tests.seeds import seeded

SERVICE = ROOT / "docs" / "service"


@pytest.fixture
def folder_of_nobody(scratch):
    """A folder of the user `nobody`, for servers that do not run as root, with the data of one that ended."""
    folder = scratch / uuid4().hex[:8]
    folder.mkdir(mode=0o700)
    for path in (folder, seeded(folder / "data"), *folder.rglob("*")):
        shutil.chown(path, "nobody")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)

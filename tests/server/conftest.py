"""Data folders: one in which no server was yet, and one in which one was."""

import shutil
from uuid import uuid4

import pytest

from tests.live_server import copy_data
from tests.seeds import seeded


@pytest.fixture(scope="package")
def seed(scratch):
    """The data of a server that started and ended in order, to be looked at and copied."""
    return seeded(scratch / "seed")


@pytest.fixture
def data(scratch):
    folder = scratch / uuid4().hex[:8]
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def used(seed, data):
    """A data folder in which a server was before."""
    return copy_data(seed, data)

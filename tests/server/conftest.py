"""Data folders, used and unused ones, and the command line in this process."""

import os
import shutil
from uuid import uuid4

import pytest

from storage.server import command_line, configuration
from tests.live_server import clean_environment, copy_data
from tests.seeds import seeded


@pytest.fixture(scope="package")
def seed(scratch):
    """Return the data of a server that started and ended in order, to be read and copied."""
    return seeded(scratch / "seed")


@pytest.fixture
def data(scratch):
    folder = scratch / uuid4().hex[:8]
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def used(seed, data):
    """Return a data folder that another server has used."""
    return copy_data(seed, data)


@pytest.fixture
def tablero(monkeypatch, capsys):
    """Return `tablero(*arguments, **environment)`, which runs a command line in this process and returns its output."""

    def run(*arguments, **environment):
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", {**clean_environment(), **environment})
            try:
                command_line.run([*map(str, arguments)])
            finally:
                configuration.origins.clear()
        return capsys.readouterr().out

    return run

"""The worlds tests run in: a database for the session, a live server."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections
from psycopg.conninfo import make_conninfo

from storage.server import embedded, options

FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "shared_buffers": "128MB"}


@pytest.fixture(scope="session")
def scratch():
    """A temporary folder for data; not pytest's own, which the user PostgreSQL runs as under root may not enter."""
    folder = Path(tempfile.mkdtemp(prefix="tablero-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(scratch):
    """Connection parameters of an embedded PostgreSQL that is fast and not durable."""
    found = options.read({"TABLERO_DATA": str(scratch / "unit")})
    with embedded.running(found, purpose="test", say=lambda line: None, settings=FAST):
        yield {"host": str(scratch / "unit" / "run"), "port": "5432", "user": "tablero", "dbname": "tablero"}


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres):
    database = connections["default"].settings_dict
    database["HOST"] = settings.DATABASES["default"]["HOST"] = postgres["host"]
    settings.LANES_CONNINFO = make_conninfo("", **{**postgres, "dbname": "test_tablero"})

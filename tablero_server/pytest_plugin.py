"""Fixtures for pytest: a Tablero for the whole run, and an account of its own for each test.

Found by pytest when Tablero is installed. Nothing starts before a test asks for it.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tablero_server.testing import Account, Service


@pytest.fixture(scope="session")
def tablero() -> "Iterator[Service]":
    """Return a server for all tests of the run: TABLERO_TEST_URL, or one that starts with them."""
    from tablero_server import testing

    url, token = os.environ.get("TABLERO_TEST_URL"), os.environ.get("TABLERO_TEST_TOKEN")
    if url and token:
        with closing(testing.use(url, token)) as service:
            yield service
        return
    with testing.join() as service:
        yield service


@pytest.fixture
def tablero_account(tablero: "Service") -> "Iterator[Account]":
    """Make an empty account."""
    account = tablero.create_account()
    yield account
    if tablero.is_shared:
        account.delete()


@pytest.fixture
def tablero_connection_string(tablero_account: "Account") -> str:
    """Return the connection string of an empty account."""
    return tablero_account.connection_string

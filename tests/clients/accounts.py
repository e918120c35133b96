"""Accounts of their own for programs that share a server, so that they do not disturb each other.

The variable TEST_REHEARSAL names a set of rules: these accounts then rehearse its failures, and the SDKs retry as they
do by default.
"""

import copy
import os
from typing import Final
from uuid import uuid4

from tests.live_server import LiveServer

REHEARSAL: Final = os.environ.get("TEST_REHEARSAL", "")


def add_account(server: LiveServer, name: str = "", kind: str = "storage") -> LiveServer:
    """Add an account with the server's key, and return the server with it in place of the development account."""
    own = copy.copy(server)
    own.account = name or f"client{uuid4().hex[:12]}"
    server.change_accounts("add", own.account, "--kind", kind, "--key1", server.key)
    if REHEARSAL:
        own.rehearse(REHEARSAL)
    return own


def cosmos_address(server: LiveServer) -> str:
    """Add an account of the kind cosmos, and return its endpoint.

    SDKs take localhost for the emulator of Azure Cosmos DB, unless the port is that of Azurite; the one for Go does so
    where 8902, a part of the emulator's port, is in the address.
    """
    own = add_account(server, f"cosmos8902{uuid4().hex[:10]}", "cosmos")
    return f"http://localhost:{own.port}/{own.account}"

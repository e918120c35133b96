"""The benchmark of the request log."""

import argparse
import base64

import pytest
from django.conf import settings

from storage.accounts import accounts
from storage.accounts.accounts import NewAccount
from storage.protocol.call import ServerSettings
from storage.protocol.table_service import TableService
from storage.runtime.threads import in_thread
from tests.tools.bench import request_log, servers


@pytest.mark.django_db(transaction=True)
async def test_measures_what_the_log_adds_to_a_request(monkeypatch):
    from console import asgi

    key = base64.b64decode(servers.DEVELOPMENT_KEY)
    await in_thread(accounts.add, "devstoreaccount1", NewAccount(key))
    service = TableService(ServerSettings(settings.LANES_CONNINFO))
    monkeypatch.setattr(asgi, "service", service)
    monkeypatch.setattr(asgi, "applications", asgi.applications._replace(serve=service.serve))
    monkeypatch.setattr(request_log, "NAMES", ("get",))
    monkeypatch.setattr(request_log, "SIZE", 1_000)

    rows = await request_log.measure(argparse.Namespace(seconds=0))

    assert [row[0] for row in rows] == ["get", "refused"]
    assert all(float(behind) > 0 < float(usual) for _, usual, _, behind, _, _ in rows)

"""Files that were made to be read for minutes: others do not notice, and they end when they are told to."""

import gzip
import random
import threading
from uuid import uuid4

import pytest
import requests

from tests.live_server import start_server
from tests.seeds import seeded
from tests.waiting import wait_for

pytestmark = pytest.mark.long

NINE = 9  # more than the connections that the console and the API share used to be
FAR_APART = 900_000  # line ends between two rows
DICE = random.Random(39)


def rows_far_apart(number):
    """Return rows that are as far apart as they may be, and differ as much as lets them be compressed so far."""
    rows = (
        b"p,%d,%s\n" % (row, DICE.randbytes(1200).hex().encode()) + b"\n" * FAR_APART for row in range(number)
    )
    return gzip.compress(b"PartitionKey,RowKey,name\n" + b"".join(rows), 6)


@pytest.fixture
def live(scratch):
    with start_server(seeded(scratch / uuid4().hex[:8])) as found:
        yield found


def test_nine_files_occupy_neither_the_console_nor_the_api_nor_the_end(live):
    live.manage("user", "add", "ada", "--admin")
    live.manage("user", "add", "eve")
    live.manage("user", "role", "eve", live.account, "maintainer")
    eve = {"Authorization": f"Bearer {live.add_token('eve', 'ci')}"}
    ada = {"Authorization": f"Bearer {live.add_token('ada', 'ci')}"}
    api = f"{live.url}/ui/api/v1"
    tables = f"{api}/accounts/{live.account}/tables"
    assert requests.post(tables, json={"name": "people"}, headers=eve, timeout=60).status_code == 201
    crafted, answers = rows_far_apart(150), []

    def send(number):
        waits = {} if number % 2 else {"Prefer": "respond-async"}
        answer = requests.post(
            f"{tables}/people/import?dry_run=true", crafted, headers={**eve, **waits}, timeout=600
        )
        answers.append(answer.status_code)

    clients = [threading.Thread(target=send, args=(number,), daemon=True) for number in range(NINE)]
    for client in clients:
        client.start()

    def going():
        result = requests.get(f"{api}/jobs?status=running", headers=ada, timeout=60)
        assert result.status_code == 200
        return [job["id"] for job in result.json()["items"] if job["kind"] == "entity.import-check"]

    wait_for(going)
    for _ in range(10):
        assert requests.get(f"{live.url}/ui/login/", timeout=60).status_code == 200
        assert requests.get(f"{api}/accounts", headers=ada, timeout=60).status_code == 200
    own = {"PartitionKey": "p", "RowKey": "r"}
    assert (
        requests.post(
            f"{tables}/people/import", json=[own], headers={**ada, "Prefer": "respond-async"}, timeout=60
        ).status_code
        == 202
    )
    assert going()
    for job in going():
        assert requests.post(f"{api}/jobs/{job}/cancel", headers=ada, timeout=60).status_code == 200
    assert live.stop() == 0
    assert not live.gave_up_requests
    for client in clients:
        client.join()
    assert set(answers) <= {202, 409, 429, 503}

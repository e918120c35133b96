"""What is said of replicas: by the management API, by the doctor, and by Get Table Service Stats."""

import re
import subprocess
import sys
from email.utils import parsedate_to_datetime

import requests

from tests.live_server import ROOT, clean_environment
from tests.replication.clients import Client
from tests.replication.postgres import wait_for
from tests.replication.world import LAG, World


def run(world: World, *arguments: str) -> str:
    """What a command of manage.py says."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env={**clean_environment(), **world.environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_replica_that_falls_behind_and_one_that_hangs(world: World) -> None:
    run(world, "user", "add", "ada", "--admin")
    token = re.search(r"tbl_\w+", run(world, "token", "add", "ada", "monitoring"))[0]

    def listed() -> list[dict[str, object]]:
        address = f"{world.server.url}/ui/api/v1/replicas"
        answer = requests.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    def have_states(*states: str) -> bool:
        return [it["state"] for it in listed()] == list(states)

    wait_for(lambda: have_states("in use", "in use"), "both replicas")
    near, far = listed()
    assert near["name"] == f"127.0.0.1:{world.to_near.port}"
    assert near["lag_seconds"] < LAG and near["problem"] is None
    assert near["name"] in run(world, "doctor")

    world.near.fetch("SELECT pg_wal_replay_pause()")
    world.far.pause()
    with Client(world.endpoint(), "behind") as client:
        client.create_table()
    wait_for(lambda: have_states("behind", "unreachable"), "both to be left out")
    near, far = listed()
    assert near["lag_seconds"] > LAG and near["lag_bytes"] > 0
    assert (far["lag_bytes"], far["problem"]) == (None, "no answer")
    said = run(world, "doctor")
    assert f"{far['name']} is unreachable" in said
    with Client(world.endpoint(), "", secondary=True) as client:
        stats = client.send("GET", "?restype=service&comp=stats").body.decode()
    assert "<Status>unavailable</Status>" in stats
    assert parsedate_to_datetime(re.search("<LastSyncTime>(.+)</", stats)[1].partition("<")[0])

    world.far.resume()
    world.near.fetch("SELECT pg_wal_replay_resume()")
    wait_for(lambda: have_states("in use", "in use"), "both to be taken back")

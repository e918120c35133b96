"""Commands that name no database, beside servers of the same user that run with other ones."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from storage.server import options, running_servers
from storage.server.refusal import Refusal
from storage.server.running_servers import RunningServer
from tests.commands import ROOT

HOLDER = """
import os, sys
from storage.server import options, running_servers
with running_servers.announced(options.read({"TABLERO_DATA": sys.argv[1]})):
    print("announced", flush=True)
    sys.stdin.read()
    os._exit(0)  # as if killed
"""


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    """Use a state folder of a user without running servers."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def with_data(folder):
    return replace(options.read({"TABLERO_DATA": str(folder)}), data=Path(folder))


def test_a_server_is_found_while_it_runs(state):
    assert running_servers.list_running() == []
    with running_servers.announced(with_data("/srv/tablero")):
        assert running_servers.list_running() == [RunningServer(os.getpid(), Path("/srv/tablero"))]
    assert running_servers.list_running() == []
    assert not list(state.rglob("*.json"))


def test_the_record_of_a_killed_server_is_ignored(state):
    command = [sys.executable, "-c", HOLDER, "/srv/killed"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        assert killed.stdout.readline() == b"announced\n"
        assert running_servers.list_running() == [RunningServer(killed.pid, Path("/srv/killed"))]
        killed.stdin.close()
    assert list(state.rglob("*.json"))
    assert running_servers.list_running() == []
    assert not list(state.rglob("*.json"))


def test_a_user_without_a_home_has_servers(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)
    with running_servers.announced(with_data("/srv/tablero")):
        assert running_servers.list_running() == []


def test_a_command_that_names_no_database_asks_which_one(tmp_path):
    default = replace(options.read({}), data=tmp_path / "default")
    running_servers.refuse_ambiguous(default, {})
    with running_servers.announced(with_data("/srv/tablero")):
        with pytest.raises(Refusal) as refused:
            running_servers.refuse_ambiguous(default, {})
        assert str(refused.value) == (
            f"No server runs in the default data folder {tmp_path}/default. A server of yours (process {os.getpid()})"
            " runs in /srv/tablero. Name the database of this command: --data /srv/tablero, or"
            f" --data {tmp_path}/default for the default folder."
        )
    with (
        running_servers.announced(with_data("/srv/her tables")),
        pytest.raises(Refusal, match=r"runs in /srv/her tables\. .*: --data '/srv/her tables', or"),
    ):
        running_servers.refuse_ambiguous(default, {})
    with running_servers.announced(with_data("/srv/tablero")):
        running_servers.refuse_ambiguous(default, {"TABLERO_DATA": str(default.data)})
        running_servers.refuse_ambiguous(replace(default, database_url="postgresql://x/y"), {})
    with (
        running_servers.announced(replace(default, database_url="postgresql://x/y")),
        pytest.raises(Refusal, match=r"runs with the database of DATABASE_URL.*: DATABASE_URL, or --data"),
    ):
        running_servers.refuse_ambiguous(default, {})


@pytest.mark.parametrize(
    "command",
    [
        "account add planets",
        "archive",
        "archive archive --base",
        "backup --drill",
        "backup backups",
        "makemigrations --check",
    ],
)
def test_commands_beside_a_server_elsewhere_ask_which_database(tablero, tmp_path, command):
    """The default folder is that of the user, or of the machine for root; nothing is made there."""
    with (
        running_servers.announced(with_data("/srv/tablero")),
        pytest.raises(Refusal, match=r"runs in /srv/tablero\. Name the database of this command: --data"),
    ):
        tablero(*command.split(), HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path))


def test_commands_without_a_database_run_beside_any_server(tablero, tmp_path):
    with running_servers.announced(with_data("/srv/tablero")):
        assert "listen" in tablero("config")
        assert tablero("backup", "--list", tmp_path) == ""
        with pytest.raises(Refusal, match="is not an archive"):
            tablero("archive", "--unseal", tmp_path / "plain", tmp_path)

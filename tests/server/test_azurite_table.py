"""The command `azurite-table`, as programs start it that wait for Azurite."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient

from tablero_server import azurite_table
from tests.live_server import ACCOUNT, KEY, ROOT, clean_environment

# lines that programs wait for: @nestjs/azure-database, and those that start containers
STARTED = re.compile(r"Azurite Table service successfully started on (?P<host>[\d.:]+)")
LISTENING = "Azurite Table service is successfully listening at http://"


@contextmanager
def azurite_table_running(folder, *arguments):
    """Yield the address that it prints; until then nothing is on standard error."""
    cache = folder / "cache"
    cache.mkdir(mode=0o711, exist_ok=True)
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, ROOT / "manage.py", "azurite-table", "--tablePort", "0", *arguments],
            cwd=folder,
            env={**clean_environment(), "XDG_CACHE_HOME": str(cache)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with process:
        try:
            lines = []
            while not lines or not lines[-1].startswith(LISTENING):
                line = process.stdout.readline()
                assert line, (folder / "errors").read_text()
                lines.append(line)
            yield STARTED.search("".join(lines))["host"], lines
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()
        assert process.wait(60) == 0
        assert rest.splitlines() == [
            "Azurite Table service is closing...",
            "Azurite Table service successfully closed",
        ]


def client(host):
    text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{host}/{ACCOUNT};"
    return TableServiceClient.from_connection_string(text)


def memory_folders():
    return set(Path(tempfile.gettempdir()).glob(f"tablero-memory-{os.getuid()}-*"))


def ended_in_order(log):
    text = log.read_text()
    return "database system is shut down" in text and "immediate shutdown" not in text


@pytest.mark.long
def test_it_serves_in_place_of_azurite_and_keeps_nothing_in_memory(scratch):
    folder = scratch / "in-memory"
    folder.mkdir(mode=0o711)
    before = memory_folders()
    options = ("--inMemoryPersistence", "--silent", "--loose", "--skipApiVersionCheck", "-d", "debug.log")
    with azurite_table_running(folder, *options) as (host, lines), client(host) as service:
        assert (folder / "errors").read_text() == ""
        service.create_table("people").create_entity({"PartitionKey": "se", "RowKey": "ada"})
        assert [table.name for table in service.list_tables()] == ["people"]
    assert lines == [
        "Azurite Table service is starting on 127.0.0.1:0\n",
        "Azurite Table service is starting at http://127.0.0.1:0\n",
        f"Azurite Table service successfully started on {host}\n",
        f"{LISTENING}{host}\n",
    ]
    assert (folder / "debug.log").exists()
    assert memory_folders() <= before
    [log] = (folder / "cache" / "tablero" / "tests").glob("*/postgres.log")
    assert ended_in_order(log)  # a copy for the next server, which otherwise has to recover it


@pytest.mark.long
def test_it_keeps_the_data_in_the_location(scratch):
    folder = scratch / "location"
    folder.mkdir(mode=0o711)
    (folder / azurite_table.AZURITE_FILE).write_text("{}")
    with azurite_table_running(folder) as (host, _), client(host) as service:
        service.create_table("people")
    assert "are not read. Copy them: tablero copy" in (folder / "errors").read_text()
    assert ended_in_order(folder / azurite_table.FOLDER / "postgres.log")
    with azurite_table_running(folder, "-l", str(folder)) as (host, _), client(host) as service:
        assert [table.name for table in service.list_tables()] == ["people"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--queuePort", "1"], "Tablero serves tables only, so it has no --queuePort."),
        (["--pwd", "x"], "Unrecognized arguments: --pwd x."),
        (["--tablePort", "many"], "--tablePort is 'many', not a number."),
        (
            ["--inMemoryPersistence", "--location", "x"],
            "--inMemoryPersistence cannot be used with --location.",
        ),
    ],
)
def test_unsupported_options_are_refused(arguments, reason, capsys):
    with pytest.raises(SystemExit) as ended:
        azurite_table.main(arguments)
    assert ended.value.code == 1
    assert reason in capsys.readouterr().err


@pytest.mark.long
def test_a_server_reports_why_it_does_not_start(tmp_path):
    command = [
        sys.executable,
        ROOT / "manage.py",
        "azurite-table",
        "--cert",
        "missing.pem",
        "--key",
        "missing.pem",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 1
    assert "missing.pem" in done.stderr


# a fork is the one place where Python drops what the handler of a signal raises
SIGNAL_IN_A_FORK = """
import os, signal, sys
from tablero_server import azurite_table
os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGTERM))
sys.exit(azurite_table.main(["--tablePort", "0"]))
"""


@pytest.mark.long
def test_a_signal_while_the_server_is_started_ends_it(scratch):
    folder = scratch / "signal"
    folder.mkdir(mode=0o711)
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL_IN_A_FORK],
        cwd=folder,
        env={**clean_environment(), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Azurite Table service successfully closed\n")
    assert "successfully started" not in done.stdout

"""The embedded PostgreSQL; test_killed_server.py kills everything that may be killed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from storage.server import cluster, database, embedded, installation, options, secret, supervisor
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal
from tests.live_server import copy_data
from tests.waiting import wait_for

# in a background run, SIGQUIT may be ignored, and processes inherit that
DEAF = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
print("deaf", flush=True)
while True:
    signal.pause()
"""


def test_postgresql_that_does_not_end_in_order_is_shut_down_at_once(scratch, monkeypatch):
    monkeypatch.setattr(supervisor, "SHUTDOWN_PATIENCE", 0.1)
    monkeypatch.setattr(supervisor, "kill_family", lambda child: None)  # the next step, if it takes long
    watching = object.__new__(supervisor.Supervisor)  # without the signals of its process
    watching.at_once = False
    watching.wakeup, other = os.pipe()
    command = [sys.executable, "-c", DEAF]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=scratch) as child:
        assert child.stdout.readline() == b"deaf\n"
        watching._shut_down(child)
    os.close(watching.wakeup)
    os.close(other)

    assert child.returncode == -signal.SIGQUIT


def test_a_postgresql_without_supervisor_is_asked_to_stop_also_where_there_is_no_ps(scratch, monkeypatch):
    program = scratch / "postgres"
    shutil.copy(shutil.which("sleep"), program)
    database = scratch / "orphaned"
    database.mkdir()
    watching = object.__new__(supervisor.Supervisor)
    watching.database = database
    monkeypatch.setenv("PATH", str(database))
    with subprocess.Popen([program, "600"]) as orphan:
        (database / "postmaster.pid").write_text(f"{orphan.pid}\n")
        try:
            # a moment after its start
            wait_for(lambda: supervisor.name_of_process(orphan.pid) == "postgres\n")
            watching._ask_orphan_to_stop(signal.SIGINT)
            assert orphan.wait(60) == -signal.SIGINT
        finally:
            orphan.kill()


BUSY = """
import os, signal, time
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
child = os.fork()
if child:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("busy", flush=True)
    os.waitpid(child, 0)
else:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = time.process_time() + 0.8
    while time.process_time() < ended:
        pass
"""


def test_postgresql_that_still_works_may_take_its_time_to_end(scratch, monkeypatch):
    work_of_children, known = supervisor.work_of_children, -1

    def some_work(pid):
        """Wait until there is some: on a busy machine the child may get no time of a processor for seconds."""
        nonlocal known
        before = known
        wait_for(lambda: work_of_children(pid) != before or child.poll() is not None)
        known = work_of_children(pid)
        return known

    monkeypatch.setattr(supervisor, "work_of_children", some_work)
    monkeypatch.setattr(supervisor, "SHUTDOWN_PATIENCE", 0.4)
    watching = object.__new__(supervisor.Supervisor)
    watching.at_once = False
    watching.wakeup, other = os.pipe()
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, cwd=scratch) as child:
        assert child.stdout.readline() == b"busy\n"
        watching._shut_down(child)
    os.close(watching.wakeup)
    os.close(other)

    assert child.returncode == 0


def started(data, **environment):
    return embedded.running(
        options.read({"TABLERO_DATA": str(data), **environment}), purpose="serve", say=print
    )


def test_data_have_one_server_whose_database_commands_use(used):
    with started(used):
        with (
            pytest.raises(Refusal, match=rf"is in use by another Tablero \(process {os.getpid()}\)"),
            started(used),
        ):
            pass
        with embedded.attached(options.read({"TABLERO_DATA": str(used)}), purpose="doctor", say=print):
            assert count_accounts(used) == 1


def count_accounts(data):
    result = options.read({"TABLERO_DATA": str(data)})
    with psycopg.connect(database.conninfo(result)) as connection:
        return connection.execute("SELECT count(*) FROM storage_account").fetchone()[0]


def test_only_the_server_makes_a_data_folder(tablero, data):
    with pytest.raises(Refusal, match=f"^There is no database in {data}. Start a server there first"):
        tablero("account", "list", "--data", data)
    assert not data.exists()


@pytest.mark.parametrize("name", ["long-" * 30, os.fsdecode(b"in ISO 8859-1: \xf6")])
def test_a_path_that_no_address_of_a_socket_can_have(seed, scratch, name):
    deep = copy_data(seed, scratch / "paths" / name)
    with started(deep):
        assert count_accounts(deep) == 1
        assert DataFolder(deep).socket_folder.parent == Path("/tmp")
    assert not DataFolder(deep).socket_folder.exists()


def test_a_secret_that_is_missing_is_refused(used):
    (used / "secret").unlink()
    with pytest.raises(Refusal, match="The secret of"):
        secret.check(options.read({"TABLERO_DATA": str(used)}))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("shared_buffers = 'a lot'", 'invalid value for parameter "shared_buffers": "a lot"; '),
        (
            "shared_bufers = 1GB",
            'unrecognized configuration parameter "shared_bufers" in file "{file}" line 1; ',
        ),
    ],
)
def test_settings_that_postgresql_refuses_are_refused(used, line, reason):
    custom = used / "config" / "custom.conf"
    custom.write_text(f"{line}\n")
    with pytest.raises(Refusal) as refused, started(used):
        pass
    assert f"PostgreSQL did not start: {reason.format(file=custom)}" in str(refused.value)
    assert str(refused.value).endswith(f"contains errors (see {used}/postgres.log).")


def test_the_reason_is_that_of_this_start(used):
    used.joinpath("postgres.log").write_text("2026-11-30 10:00:00 UTC [1] FATAL:  the disk is full\n")
    control = used / "database" / "global" / "pg_control"
    control.rename(used / "pg_control")
    try:
        with pytest.raises(Refusal) as refused, started(used):
            pass
    finally:
        used.joinpath("pg_control").rename(control)
    assert "could not find the database system" in str(refused.value)
    assert "the disk is full" not in str(refused.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")
class TestRoot:
    def test_folder_that_the_other_user_may_not_enter(self, scratch):
        closed = scratch / "closed"
        closed.mkdir(mode=0o700)
        with (
            pytest.raises(Refusal, match=f"may not enter {closed}; choose another folder"),
            started(closed / "data"),
        ):
            pass

    def test_user_that_is_missing(self, data):
        with (
            pytest.raises(Refusal, match="no user nobodyknows"),
            started(data, TABLERO_PG_USER="nobodyknows"),
        ):
            pass

    def test_installation_that_the_other_user_may_not_read(self, data, monkeypatch):
        may = installation.SystemUser.may
        monkeypatch.setattr(
            installation.SystemUser,
            "may",
            lambda user, test, path: "site-packages" not in str(path) and may(user, test, path),
        )
        with started(data):
            postmaster = psutil.Process(
                int((data / "database" / "postmaster.pid").read_text().splitlines()[0])
            )
            assert postmaster.exe().startswith(str(data))
            assert postmaster.uids().real != 0


@pytest.mark.parametrize(
    ("memory", "stored", "expected"),
    [(512, 0, 128), (24_000, 0, 512), (24_000, 1000, 2000), (24_000, 50_000, 3000), (64_000, 50_000, 4096)],
)
def test_memory_and_what_is_stored_set_the_size_of_shared_buffers(memory, stored, expected):
    assert cluster._shared_buffers(memory, stored) == expected


def test_small_takes_less_memory_but_what_a_command_sets_counts(tmp_path):
    folder = DataFolder(tmp_path)
    (tmp_path / "database/base/5").mkdir(parents=True)
    (tmp_path / "database/base/5/1234").write_bytes(b"x" * 100)
    cluster._configure(folder, {"wal_buffers": "2MB"}, 1, small=True)
    text = (folder.config / "postgresql.conf").read_text()
    assert "shared_buffers = '64MB'" in text and "wal_buffers = '2MB'" in text
    assert cluster._size(folder.database) == 100


@pytest.mark.parametrize("was_killed", [False, True])
def test_a_command_gives_up_on_a_server_whose_postgresql_does_not_run(data, monkeypatch, was_killed):
    monkeypatch.setattr(embedded, "PATIENCE", 0.0)
    folder = DataFolder(data)
    folder.create()
    if was_killed:
        folder.database.mkdir()
        (folder.database / "postmaster.pid").write_text("1\n" * 7 + "ready   \n")
    result = options.read({"TABLERO_DATA": str(data)})
    with (
        folder.held("serve"),
        pytest.raises(Refusal, match=r"accepts no connections\. See .*postgres\.log"),
        embedded.attached(result, purpose="doctor", say=lambda line: None),
    ):
        pass


def test_the_cause_of_a_failure_of_initdb():
    output = (
        'fixing permissions on existing directory ... ok\ninitdb: error: could not create directory "base":'
        ' No space left on device\ninitdb: removing contents of data directory "database.new"\n'
    )
    assert cluster._first_error(output).endswith("No space left on device")
    assert cluster._first_error("something\nelse\n") == "else"

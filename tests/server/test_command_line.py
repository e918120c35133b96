"""The `tablero` command: its help and its version, and the commands of Django that it refuses."""

import io
import os
import subprocess
import sys
from importlib import import_module

import pytest
from django.core.management import CommandError, call_command, get_commands
from django.db import connection

from storage.health import release
from storage.jobs import jobs
from storage.server import command_line
from storage.server.refusal import Refusal
from storage.sql.django import execute
from tests.live_server import ROOT


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_that_of_tablero(arguments, capsys):
    command_line.run(arguments)
    assert capsys.readouterr().out == f"Tablero {release.version()}\n"
    assert f'version = "{release.version()}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"], ["-h"]])
def test_help_lists_the_commands_of_tablero_alone(arguments, capsys):
    command_line.run(arguments)
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert sorted(listed) == sorted(
        [*command_line.own_commands(), "azurite-table", "help", "version", "test"]
    )


def test_an_installed_package_has_no_tests(monkeypatch, tmp_path):
    monkeypatch.setattr(command_line, "TESTS", tmp_path / "missing")
    assert "  test " not in command_line.describe_commands()


@pytest.mark.parametrize("name", sorted(command_line.own_commands()))
def test_the_help_of_a_command_has_options_of_tablero_alone(name):
    module = import_module(f"{get_commands()[name]}.management.commands.{name}")
    text = module.Command().create_parser("tablero", name).format_help()
    assert "--settings" not in text
    assert "--traceback" not in text
    assert "--no-color" not in text
    assert "--data DIR" in text
    assert "--config FILE" in text


@pytest.mark.django_db(transaction=True)
def test_a_command_whose_database_ends_says_so_without_a_traceback(monkeypatch):
    def end(*arguments, **options):
        execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(jobs, "get", end)
    with pytest.raises(
        CommandError, match=r"^The connection to the database was lost: terminating connection"
    ):
        call_command("job", "show", "1")
    connection.close()


def test_the_settings_are_those_of_tablero_in_the_shell_of_another_project(monkeypatch, capsys):
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
    command_line.main(["version"])
    assert os.environ["DJANGO_SETTINGS_MODULE"] == "console.settings"


@pytest.mark.parametrize("name", ["flush", "migrate", "loaddata", "runserver", "changepassword", "sqlflush"])
def test_commands_that_could_destroy_data_are_refused(name, monkeypatch):
    monkeypatch.delenv("TABLERO_DEBUG", raising=False)
    assert name in get_commands()
    for arguments in ([name], ["help", name], [name, "--help"]):
        with pytest.raises(Refusal, match=f"There is no command {name}"):
            command_line.run(arguments)


def test_an_unknown_command_is_refused_with_one_that_is_near():
    with pytest.raises(
        Refusal, match=r"^There is no command srve \(did you mean serve\?\); see: tablero help\.$"
    ):
        command_line.run(["srve", "--data", "x"])


def test_commands_of_django_run_for_those_who_work_on_tablero(monkeypatch):
    ran = []
    monkeypatch.setattr(command_line, "_run_django", lambda command, arguments: ran.append(command))
    command_line.run(["makemigrations", "--check"])
    monkeypatch.setenv("TABLERO_DEBUG", "1")
    command_line.run(["sqlflush"])
    assert ran == ["makemigrations", "sqlflush"]


# standard streams

VERSION = [sys.executable, "-m", "tablero_server", "version"]


def run_version(shell, **environment):
    """Return the status and the errors of a shell command that runs `"$@"`, which prints the version."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell, "bash", *VERSION],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


def test_a_reader_that_has_read_enough_ends_a_command_without_a_word():
    assert run_version('"$@" | exec 0<&-; exit ${PIPESTATUS[0]}') == (141, "")


def test_output_that_cannot_be_written_is_named():
    assert run_version('"$@" > /dev/full') == (
        1,
        "tablero: The output cannot be written: No space left on device.\n",
    )


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_runs_without_standard_streams(closed):
    assert run_version(f'"$@" {closed}') == (0, "")


@pytest.mark.parametrize(
    ("encoding", "errors", "text", "written"),
    [
        ("latin-1", "strict", "“w”", rb"\u201cw\u201d"),
        ("ascii", "surrogateescape", "“w”", rb"\u201cw\u201d"),
        ("utf-8", "surrogateescape", "“\ud83d”", "“\\ud83d”".encode()),
    ],
)
def test_a_sentence_is_written_in_any_encoding(encoding, errors, text, written):
    encoded = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors)
    command_line.prepare_streams((encoded,))
    encoded.write(text)
    encoded.flush()
    assert encoded.buffer.getvalue() == written

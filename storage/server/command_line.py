"""The `tablero` command, and manage.py once its environment is set up."""

import argparse
import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from storage.core import registry
from storage.health import release
from storage.server import (
    configuration,
    database,
    embedded,
    garbage,
    options,
    postgresql_upgrade,
    running_servers,
    secret,
)
from storage.server.refusal import Refusal

if TYPE_CHECKING:
    from storage.server.examination import Examination

_COMMANDS: Final[Mapping[str, Mapping[str, str]]] = {
    "Server": {
        "serve": "Run the Table service, the console and the management API.",
        "azurite-table": "Serve tables in place of the command azurite-table of Azurite.",
        "upgrade": "Bring the database to this version without starting the server.",
        "config": "Print all settings as they are, and where each comes from.",
        "doctor": "Examine the installation, the settings, the database and what belongs to it.",
        "pg": "Run a program of PostgreSQL on the embedded database.",
    },
    "Accounts and people": {
        "account": "Add, list, change, copy, export, import and remove storage accounts, and rotate their keys.",
        "user": "Add, list and remove users of the console, and set roles and passwords.",
        "token": "Create, list and revoke tokens of the management API.",
        "notice": "List notices, look for conditions now, and test e-mail.",
    },
    "Tables": {
        "import": "Write the rows of a file into a table: CSV, JSON, lines of JSON, Excel or Parquet.",
        "export": "Write the entities of a table, or of all tables, into a file of any of these formats.",
        "index": "List, add and drop property indexes.",
        "changes": "Print the change feed of an account or a table.",
        "compare": "Compare two accounts or tables, and make one equal to the other.",
        "job": "List jobs, wait for one, cancel, pause and resume it.",
        "requests": "Say why requests were refused, failed or slow.",
        "snapshot": "Take, list, restore and delete snapshots.",
        "branch": "Make, list and reset branches of an account.",
    },
    "Other": {
        "help": "List the commands, or describe one: help COMMAND.",
        "version": "Print the version.",
    },
}
_NO_COMMANDS_OF_DJANGO: Final = {"azurite-table", "help", "version"}
# for people who work on Tablero; Django's own commands make a database if there is none
DEVELOPMENT: Final = {
    "check", "compilemessages", "dbshell", "makemessages", "makemigrations", "messages", "newsubject", "shell",
    "showmigrations", "sqlmigrate",
}  # fmt: skip
TESTS: Final = Path(__file__).parents[2] / "tests"

ALONE: Final = {
    "archive",
    "backup",
    "config",
    "messages",
    "newsubject",
    "pg",
    "restore",
}  # our commands that start the database themselves if they need it, and check their requirements
WITHOUT_DATA: Final = {"config", "messages", "newsubject"}
ASKING: Final = {
    "archive",
    "backup",
}  # commands that may need no database, and ask which one they need themselves

_STANDARD_ERROR: Final = 2
_ENDED_BY_READER: Final = 141  # as of programs that SIGPIPE ends


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"  # whatever project of Django the shell works on
    open_streams()
    prepare_streams((sys.stdout, sys.stderr))
    try:
        try:
            run(arguments)
        finally:
            sys.stdout.flush()
    except Refusal as refusal:
        sys.exit(f"tablero: {refusal}")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if not _is_lost(sys.stdout):
            raise
        if isinstance(error, BrokenPipeError):
            sys.exit(_ENDED_BY_READER)
        sys.exit(f"tablero: The output cannot be written: {error.strerror}.")


def open_streams() -> None:
    """Open standard streams that are closed, before files and connections get their numbers."""
    with suppress(OSError):
        while (opened := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
            os.set_inheritable(opened, True)
        os.close(opened)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def prepare_streams(streams: Iterable[TextIO]) -> None:
    """Let streams escape what their encodings lack: letters, and halves of surrogate pairs in stored texts."""
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_lost(stream: TextIO) -> bool:
    """Return whether a stream takes nothing any more; what it still has to write is then dropped."""
    try:
        stream.write("\n")
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True
    return False


def run(arguments: list[str]) -> None:
    command = arguments[0] if arguments else "help"
    registry.leave_out(options.read_without(os.environ))
    if command != "serve":  # serve does it when its modules are imported
        garbage.collect_rarely()
    match arguments:
        case ["version" | "--version", *_]:
            print(f"Tablero {release.version()}")
        case [] | ["help" | "--help" | "-h"]:
            print(describe_commands())
        case ["help", described, *_]:
            run([described, "--help"])
        case ["azurite-table", *rest]:
            from tablero_server import azurite_table

            sys.exit(azurite_table.main(rest))
        case ["test", *rest]:
            sys.exit(_test(rest))
        case _:
            _refuse_unknown(command)
            _run_django(command, arguments)


def list_commands() -> dict[str, dict[str, str]]:
    """Return the commands in groups with their summaries, each of a subject behind the one that it follows."""
    groups = {title: dict(commands) for title, commands in _COMMANDS.items()}
    for it in registry.commands():
        title = it.group.value
        groups[title] = registry.insert_after(it.after, it.name, it.summary, groups[title])
    return groups


def own_commands() -> set[str]:
    """Return the names of our commands run by Django."""
    names = {name for commands in list_commands().values() for name in commands}
    return names - _NO_COMMANDS_OF_DJANGO


def describe_commands() -> str:
    """Return the commands in groups, with a line about each."""
    groups = list_commands()
    if TESTS.is_dir():
        groups["Other"]["test"] = "Run the tests; arguments go to pytest."
    lines = [f"Tablero {release.version()}", "", "usage: tablero COMMAND [OPTIONS]"]
    for title, commands in groups.items():
        lines += ["", f"{title}:", *(f"  {name:13} {summary}" for name, summary in commands.items())]
    return "\n".join([*lines, "", "Describe the options of a command: tablero COMMAND --help"])


def _refuse_unknown(command: str) -> None:
    own = own_commands()
    if command in own | DEVELOPMENT or options.is_on(os.environ, "DEBUG"):
        return
    near = difflib.get_close_matches(command, own, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise Refusal(f"There is no command {command}{hint}; see: tablero help.")


def _run_django(command: str, arguments: list[str]) -> None:
    before = dict(os.environ)
    asks_for_help = not {"-h", "--help"}.isdisjoint(arguments)
    listen = options.ListenOptions()
    if command in options.COMMANDS and not asks_for_help:
        listen = options.export(arguments[1:], os.environ, command)
    else:
        arguments = _take_common(arguments)
    needs_nothing = asks_for_help or _is_remote(arguments)
    with _examining(arguments) if command == "doctor" and not asks_for_help else nullcontext() as examination:
        configuration.apply(os.environ, before)
        listen.apply(os.environ)
        registry.leave_out(options.read_without(os.environ))
        _refuse_unknown(command)
        with nullcontext() if needs_nothing else _surroundings(command, examination):
            from django.core.management import execute_from_command_line

            try:
                execute_from_command_line(["tablero", *arguments])
            finally:
                database.close_pools()


def _examining(arguments: list[str]) -> "Examination":
    from storage.server.examination import Examination

    return Examination(arguments)


def _is_remote(arguments: Sequence[str]) -> bool:
    """Return whether a command uses another server over HTTP."""
    return arguments[0] == "apply" and any(it.partition("=")[0] == "--server" for it in arguments)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _test(arguments: list[str]) -> int:
    # the tests bring servers of their own
    for name in [name for name in os.environ if name.startswith(options.PREFIX)]:
        del os.environ[name]
    os.environ.pop("DATABASE_URL", None)
    os.environ.pop("AZURITE_ACCOUNTS", None)
    # hundreds of processes run this code, and pytest rewrites the tests: all of it is compiled once
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        import pytest
    except ModuleNotFoundError:
        raise Refusal(
            "The tests need their own packages; run manage.py test in a copy of the source."
        ) from None
    return int(pytest.main(arguments))


def _take_common(arguments: list[str]) -> list[str]:
    """Parse --data and --config, which apply to all commands; return the other arguments."""
    parser = argparse.ArgumentParser(prog="tablero", add_help=False, allow_abbrev=False)
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--config", metavar="FILE")
    known, rest = parser.parse_known_args(arguments)
    if known.data:
        os.environ["TABLERO_DATA"] = known.data
    if known.config:
        os.environ[configuration.FILE] = known.config
    return rest


@contextmanager
def _surroundings(command: str, examination: "Examination | None") -> Iterator[None]:
    """Provide the context of a command: the secret, and a running database unless it starts its own."""
    if command in WITHOUT_DATA:
        yield
        return
    read_options = options.read(os.environ)
    if examination is not None:
        examination.examine(read_options)
    if command not in ASKING | {"serve"}:
        running_servers.refuse_ambiguous(read_options, os.environ)
    if command in ALONE:
        yield
        return
    if command in own_commands() - {"serve"}:
        secret.check(read_options)
    else:
        secret.ensure(read_options)
    if read_options.database_url:
        yield
        return
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]  # libpq's, meant for other databases
    with _embedded(command, read_options):
        yield


def _embedded(command: str, read_options: options.Options) -> AbstractContextManager[object]:
    if command == "serve":
        return nullcontext()
    if command == "upgrade":
        postgresql_upgrade.convert(read_options, say)
    if command in own_commands():
        return embedded.attached(read_options, purpose=command, say=say)
    return embedded.attached_or_new(read_options, purpose=command, say=say)

"""The `tablero` command, and manage.py once its environment stands."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from storage.server import database, embedded, options, secret
from storage.server.refusal import Refusal

# of Django's commands; those of ours prepare what they need
WITH_DATABASE = {
    "createcachetable", "dbshell", "dumpdata", "flush", "inspectdb", "loaddata", "makemigrations", "migrate",
    "runserver", "shell", "showmigrations", "sqlflush", "sqlmigrate", "sqlsequencereset", "squashmigrations",
}  # fmt: skip
OWN = {
    "account", "branch", "changes", "compare", "distribute", "doctor", "index", "serve", "snapshot", "token",
    "undistribute", "user",
}  # fmt: skip

ALONE = {"pg"}  # of ours; starts the database itself


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        run(arguments)
    except Refusal as refusal:
        sys.exit(f"tablero: {refusal}")
    except KeyboardInterrupt:
        sys.exit(130)


def run(arguments: list[str]) -> None:
    command = arguments[0] if arguments else "help"
    if command == "test":
        sys.exit(_test(arguments[1:]))
    asks_for_help = not {"-h", "--help"}.isdisjoint(arguments)
    if command == "serve" and not asks_for_help:
        options.export(arguments[1:], os.environ)
    else:
        arguments = _take_data(arguments)
    with _surroundings("help" if asks_for_help else command):
        from django.core.management import execute_from_command_line

        try:
            execute_from_command_line(["tablero", *arguments])
        finally:
            database.close_pools()


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _test(arguments: list[str]) -> int:
    # the tests bring servers of their own
    for name in [name for name in os.environ if name.startswith(options.PREFIX)]:
        del os.environ[name]
    os.environ.pop("DATABASE_URL", None)
    os.environ.pop("AZURITE_ACCOUNTS", None)
    try:
        import pytest
    except ModuleNotFoundError:
        raise Refusal(
            "The tests need their own packages; run manage.py test in a copy of the source."
        ) from None
    return int(pytest.main(arguments))


def _take_data(arguments: list[str]) -> list[str]:
    """Every command knows --data; those of Django have no such option."""
    parser = argparse.ArgumentParser(prog="tablero", add_help=False, allow_abbrev=False)
    parser.add_argument("--data", metavar="DIR")
    known, rest = parser.parse_known_args(arguments)
    if known.data:
        os.environ["TABLERO_DATA"] = known.data
    return rest


@contextmanager
def _surroundings(command: str) -> Iterator[None]:
    """What a command finds in place: a secret, and a running database unless it starts its own."""
    if command not in WITH_DATABASE | OWN:
        yield
        return
    found = options.read(os.environ)
    secret.ensure(found)
    if found.database_url:
        yield
        return
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]  # libpq's, meant for other databases
    if command == "serve":
        yield
        return
    with embedded.attached(found, purpose=command, say=say):
        yield

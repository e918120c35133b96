"""The `tablero` command, and manage.py once its environment stands."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from storage.server import embedded, options, secret
from storage.server.refusal import Refusal

# what needs no database, so that none is started for it
WITHOUT_DATABASE = {
    "check", "collectstatic", "compilemessages", "diffsettings", "findstatic", "help", "makemessages",
    "startapp", "startproject", "version", "--help", "-h", "--version",
}  # fmt: skip


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
    asks_for_help = {"-h", "--help"} & set(arguments)
    if command == "serve" and not asks_for_help:
        options.export(arguments[1:], os.environ)
    else:
        arguments = _take_data(arguments)
    with _surroundings(command) if not asks_for_help else nullcontext():
        from django.core.management import execute_from_command_line

        execute_from_command_line(["tablero", *arguments])


def _test(arguments: list[str]) -> int:
    for name in [name for name in os.environ if name.startswith("TABLERO_")]:
        del os.environ[name]  # the tests bring servers of their own
    os.environ.pop("DATABASE_URL", None)
    os.environ.pop("AZURITE_ACCOUNTS", None)
    import pytest

    return int(pytest.main(arguments))


def _take_data(arguments: list[str]) -> list[str]:
    """Every command knows --data; those of Django have no such option."""
    rest = list(arguments)
    for index, argument in enumerate(arguments):
        if argument.startswith("--data="):
            os.environ["TABLERO_DATA"] = argument.removeprefix("--data=")
            del rest[index]
        elif argument == "--data" and index + 1 < len(arguments):
            os.environ["TABLERO_DATA"] = arguments[index + 1]
            del rest[index : index + 2]
    return rest


@contextmanager
def _surroundings(command: str) -> Iterator[None]:
    """What a command finds in place: a secret, and a running database unless it starts its own."""
    if command in WITHOUT_DATABASE:
        yield
        return
    found = options.read(os.environ)
    secret.ensure(found)
    if command == "serve" or found.database_url:
        yield
        return
    with embedded.attached(found, purpose=command, say=say):
        yield


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

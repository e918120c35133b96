"""The command `pg`: run one of PostgreSQL's own programs on the embedded database."""

import argparse
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from storage.management.command import TableroCommand, add_common_arguments
from storage.server import database, embedded, installation, secret
from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal


class Command(TableroCommand):
    help = (
        "Run a program of PostgreSQL, such as pg_dump, pg_restore or psql, on the embedded database, which is started"
        " for it if no server runs. In an empty data folder with a secret, the database is created."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_common_arguments(parser)
        parser.add_argument("program", help="the name of the program")
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")

    def handle(self, *args: Any, program: str, arguments: list[str], **options: Any) -> None:
        server_options: Options = settings.OPTIONS
        _check(server_options)
        with embedded.attached_or_new(server_options, purpose="pg", say=self.stderr.write):
            try:
                done = subprocess.run([program, *arguments], env=_environment(server_options), check=False)
            except OSError as error:
                raise Refusal(f"{program} cannot be run: {error.strerror}.") from None
        if done.returncode:
            raise SystemExit(1)


def _check(options: Options) -> None:
    if options.database_url:
        raise Refusal(
            "The database is the one in DATABASE_URL; use the programs of that PostgreSQL, for example:"
            ' pg_dump "$DATABASE_URL".'
        )
    if not DataFolder(options.data).database.exists() and not secret.path_of(options).exists():
        raise Refusal(f"There is no database in {options.data}; name another folder with --data DIR.")


def _environment(options: Options) -> Mapping[str, str]:
    """Return the environment in which PostgreSQL's programs find each other and the database."""
    parameters = database.parameters(options)
    path = os.environ.get("PATH", os.defpath)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PG")},
        "PGHOST": parameters["host"],
        "PGPORT": parameters["port"],
        "PGUSER": parameters["user"],
        "PGDATABASE": parameters["dbname"],
        "TABLERO_DATA": str(options.data),
        "PATH": f"{installation.packaged_programs()}{os.pathsep}{path}",
    }

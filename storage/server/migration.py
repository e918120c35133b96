"""From whatever the database is to what this version needs: checked, migrated, with its accounts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import iter_modules

import psycopg
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from storage.operations import accounts
from storage.operations.accounts import AccountError, AccountKeys
from storage.server.options import Options
from storage.server.refusal import Refusal

OLDEST_POSTGRESQL = 150000
LOCK = 0x7461626C65726F  # any number that nobody else on the database server uses
CONNECT_TIMEOUT = 10


def prepare(options: Options, say: Callable[[str], None]) -> None:
    with _alone(say):
        _migrate(say)
        _declare_accounts(options)


def migrate(say: Callable[[str], None]) -> None:
    """For commands that come before the first start of a server."""
    with _alone(say):
        _migrate(say)


def declared_accounts(options: Options) -> list[AccountKeys]:
    """Like the emulator: AZURITE_ACCOUNTS takes the place of the development account."""
    declared = accounts.read_declaration(options.azurite_accounts) + accounts.read_declaration(
        options.accounts
    )
    if options.development_account_allowed and not options.azurite_accounts:
        declared.insert(0, AccountKeys(accounts.DEVELOPMENT_ACCOUNT, accounts.DEVELOPMENT_KEY))
    return declared


@contextmanager
def _alone(say: Callable[[str], None]) -> Iterator[None]:
    """One process at a time; the others that start on the same database wait here."""
    try:
        conn = psycopg.connect(settings.LANES_CONNINFO, autocommit=True, connect_timeout=CONNECT_TIMEOUT)
    except psycopg.OperationalError as error:
        reason = str(error).strip().splitlines()[-1]
        raise Refusal(f"The database cannot be reached: {reason}.") from None
    with conn:
        _check_version(conn.info.server_version)
        taken = conn.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
        if taken != (True,):
            say("Waiting for another server, which prepares the same database ...")
            conn.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        yield


def _check_version(version: int) -> None:
    if version < OLDEST_POSTGRESQL:
        raise Refusal(
            f"The server at DATABASE_URL is PostgreSQL {version // 10000};"
            f" Tablero needs {OLDEST_POSTGRESQL // 10000} or newer."
        )


def _migrate(say: Callable[[str], None]) -> None:
    if _known() <= set(MigrationRecorder(connection).applied_migrations()):
        return
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        say("Bringing the database up to date ...")
        call_command("migrate", verbosity=0, interactive=False)


def _known() -> set[tuple[str, str]]:
    """The migrations there are, by application and name; loading them would take longer than anything else here."""
    return {
        (application.label, module.name)
        for application in apps.get_app_configs()
        for module in iter_modules([str(Path(application.path) / "migrations")])
        if not module.ispkg and module.name[0] not in "_~"
    }


def _declare_accounts(options: Options) -> None:
    try:
        accounts.check_secret()
        accounts.ensure(declared_accounts(options))
    except AccountError as error:
        raise Refusal(str(error)) from None

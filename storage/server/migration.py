"""Database upgrade to this version, and creation of the declared accounts."""

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.commands.migrate import Command as Migrate
from django.db import OperationalError, ProgrammingError, transaction
from django.db.migrations import Migration
from django.db.migrations.exceptions import MigrationSchemaMissing

from storage.accounts import declarations, sealed_keys
from storage.accounts.declarations import AccountKeys
from storage.accounts.refusals import AccountError
from storage.core import registry
from storage.core.subject import Hook
from storage.domain.values.names import DEVELOPMENT_ACCOUNT
from storage.health import database_version
from storage.history import former_versions
from storage.relations import table_relations
from storage.server import initial_schema
from storage.server.backups import backup, schedule
from storage.server.options import Options
from storage.server.refusal import Refusal
from storage.sql.django import execute, fetch

OLDEST_POSTGRESQL = 150000
LOCK = 0x7461626C65726F  # any number that no other program uses on the database server
CONNECT_TIMEOUT = 10
BACKUPS: Final = "before-upgrade"  # the folder in the data folder with the backup before the last upgrade

_FIRST_WITH_RECORDED: Final = ("storage", "0036_one_record")  # before it, changes were stored with activities

# a lock that waits blocks the requests of servers that run, for whom 5 seconds without an answer are too long
_LOCK_TIMEOUT: Final = "2s"
_LOCK_PAUSE: Final = 1.0  # seconds in which they go on

# Limits of a role are meant for requests.
_WITHOUT_LIMITS: Final = "SELECT set_config(name, '0', %s) FROM pg_settings WHERE name = ANY(%s)"

# settings that a role may have, or a database, with the value that works
_NEEDED_SETTINGS: Final = """
SELECT name, current_setting(name) || why, needed
FROM (VALUES
    ('standard_conforming_strings', ', which changes what texts mean', 'on'),
    ('array_nulls', ', in which nulls are texts', 'on'),
    ('intervalstyle', ', in which durations cannot be read', 'postgres')
) AS wanted (name, why, needed)
WHERE current_setting(name) <> needed
UNION ALL
SELECT 'datestyle', current_setting('datestyle') || ', in which times are ambiguous', 'ISO'
WHERE current_setting('datestyle') NOT LIKE 'ISO%'
UNION ALL
SELECT 'search_path', current_setting('search_path') || ', in which there is no schema for tables', 'public'
WHERE coalesce(current_schema(), 'pg_catalog') = 'pg_catalog'
"""

# A database that has tables goes on, and doctor says what it lacks.
_WRONG_ENCODING: Final = """
SELECT current_database(), current_setting('server_encoding')
WHERE current_setting('server_encoding') <> 'UTF8' AND to_regclass('django_migrations') IS NULL
"""

_UPGRADE: Final = "Start the server, or run: tablero upgrade"


def prepare(options: Options, say: Callable[[str], None]) -> None:
    """Upgrade the database, and create the declared accounts."""
    with _alone(say):
        _upgrade(options, say)
        _declare_accounts(options)


def upgrade(options: Options, say: Callable[[str], None]) -> None:
    """Upgrade the database; raises Refusal if it is of a newer version."""
    with _alone(say):
        _upgrade(options, say)


def check() -> None:
    """Raise Refusal unless the database is of this version."""
    with _connected():
        _refuse_newer()
        if not database_version.applied_migrations():
            raise Refusal(f"The database is empty. {_UPGRADE}")
        if database_version.is_older():
            raise Refusal(f"The database is older than this version of Tablero. {_UPGRADE}")


def declared_accounts(options: Options) -> list[AccountKeys]:
    """Return the declared accounts; as in the emulator, AZURITE_ACCOUNTS replaces the development account."""
    declared = declarations.read_declaration(options.azurite_accounts) + declarations.read_declaration(
        options.accounts
    )
    if options.development_account_allowed and not options.azurite_accounts:
        declared.insert(0, AccountKeys(DEVELOPMENT_ACCOUNT, sealed_keys.DEVELOPMENT_KEY))
    return declared


@contextmanager
def _alone(say: Callable[[str], None]) -> Iterator[None]:
    """Run the block in one process at a time; others that start on the same database wait."""
    if settings.OPTIONS.database_url:
        refuse_transaction_pool(settings.LANES_CONNINFO)
    with _connected() as conn:
        for name, encoding in conn.execute(_WRONG_ENCODING).fetchall():
            raise Refusal(
                f"The database {name} has the encoding {encoding}, which lacks letters. Create one with UTF8:"
                f" CREATE DATABASE {name} OWNER {conn.info.user} ENCODING 'UTF8' TEMPLATE template0"
            )
        conn.execute(_WITHOUT_LIMITS, [False, ["idle_session_timeout", "lock_timeout", "statement_timeout"]])
        taken = conn.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
        if taken != (True,):
            say("Waiting for another server, which prepares the same database ...")
            conn.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        yield
        # a connection that is closed keeps it for a moment, in which the next would seem to have to wait
        conn.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


@contextmanager
def _connected(conninfo: str | None = None) -> Iterator[psycopg.Connection]:
    try:
        conn = psycopg.connect(
            conninfo or settings.LANES_CONNINFO,
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT,
            client_encoding="UTF8",
        )
    except psycopg.OperationalError as error:
        reason = _reason(error)
        hint = " Check that it runs, and DATABASE_URL." if settings.OPTIONS.database_url else ""
        if reason.endswith("session is read-only"):
            hint = (
                " It is a standby, or default_transaction_read_only is on for the role or the database. Name the"
                " primary, or turn it off."
            )
        raise Refusal(f"The database cannot be reached: {reason}.{hint}") from None
    with conn:
        _check_version(conn.info.server_version)
        _check_settings(conn)
        yield conn


def refuse_transaction_pool(conninfo: str) -> None:
    """Raise Refusal if connections lose their session, as behind a pooler in transaction mode."""
    with _connected(conninfo) as one, _connected(conninfo) as other:
        session = _session(one)
        with other.transaction():
            is_shared = _session(other) == session or _session(one) != session
    if is_shared:
        raise Refusal(
            "DATABASE_URL leads to a pooler in transaction mode, and Tablero needs sessions. Name PostgreSQL itself, or"
            " a database of the pooler with pool_mode=session, and give this address as --pooler-url."
        )


def _session(conn: psycopg.Connection) -> int:
    [row] = conn.execute("SELECT pg_backend_pid()", prepare=False)
    return int(row[0])


def _reason(error: psycopg.OperationalError) -> str:
    """Return libpq's error message on one line, with hosts and ports and without its questions."""
    lines = [line.strip().removeprefix("- ") for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and not line.endswith("?")).removeprefix(
        "connection failed: "
    )


def _check_version(version: int) -> None:
    if version < OLDEST_POSTGRESQL:
        raise Refusal(
            f"The server at DATABASE_URL is PostgreSQL {version // 10000};"
            f" Tablero needs {OLDEST_POSTGRESQL // 10000} or newer."
        )


def _check_settings(conn: psycopg.Connection) -> None:
    for name, value, needed in conn.execute(_NEEDED_SETTINGS, prepare=False).fetchall():
        raise Refusal(
            f"The role {conn.info.user} has {name} {value}. Tablero needs another one:"
            f" ALTER ROLE {conn.info.user} SET {name} = {needed}"
        )


def _upgrade(options: Options, say: Callable[[str], None]) -> None:
    _refuse_newer()
    if database_version.is_older():
        _refuse_running_servers()
        if sentence := database_version.explain_unreleased():
            raise Refusal(sentence)
        if database_version.applied_migrations():
            _back_up(options, say)
        say("Bringing the database up to date ...")
    with database_version.stopping_older_servers():
        _migrate(say, has_own_postgresql=not options.database_url)
    table_relations.complete_all()


def _back_up(options: Options, say: Callable[[str], None]) -> None:
    """Back up before an upgrade, to the configured location or the data folder; raises Refusal on failure."""
    if not options.upgrade_backup:
        return
    if options.backups is not None:
        request = schedule.request(options.backups)
    elif not options.database_url:
        # not recorded: it is on the disk of the database
        request = backup.BackupRequest(str(options.data / BACKUPS), keep=1, is_recorded=False)
    else:
        say("Without --backup-to DIR, no backup of the database in DATABASE_URL is made before the upgrade.")
        return
    say("Backing up the database before the upgrade ...")
    try:
        made = backup.back_up_running(options, request, say)
    except Refusal as refusal:
        raise Refusal(
            f"The database was not upgraded, because the backup before it failed. {refusal} Choose another folder with"
            " --backup-to DIR, or upgrade without a backup: --upgrade-backup off"
        ) from None
    say(f"The backup is {made.location}.")


def _refuse_newer() -> None:
    if sentence := database_version.explain_newer():
        folder = settings.OPTIONS.data / BACKUPS
        raise Refusal(f"{sentence} There is one in {folder}." if folder.exists() else sentence)


def _refuse_running_servers() -> None:
    hosts = database_version.servers_that_cannot_be_stopped()
    if hosts:
        raise Refusal(
            f"Processes of an older version of Tablero, on {', '.join(sorted(set(hosts)))}, use the database, and they"
            " would write to it in their way. Stop these servers first."
        )


def _migrate(say: Callable[[str], None], *, has_own_postgresql: bool = False) -> None:
    """Run the migrations in one transaction, again if another server's locks are in the way: it goes on meanwhile."""
    while True:
        try:
            return _migrate_once(has_own_postgresql=has_own_postgresql)
        except OperationalError as error:
            if not isinstance(
                error.__cause__, psycopg.errors.DeadlockDetected | psycopg.errors.LockNotAvailable
            ):
                raise
        say("Another server uses what has to be changed. Trying again ...")
        time.sleep(_LOCK_PAUSE)


def _migrate_once(*, has_own_postgresql: bool) -> None:
    if not database_version.is_older():
        return
    try:
        with transaction.atomic():  # a process that is killed leaves nothing behind
            fetch(_WITHOUT_LIMITS, True, ["statement_timeout", "transaction_timeout"])
            execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
            if has_own_postgresql and not database_version.applied_migrations():
                initial_schema.create()
            if database_version.is_older():
                call_command(_Migrate(), verbosity=0, interactive=False)
                gc.collect()  # the models of all versions, before the rest is kept
    except MigrationSchemaMissing:
        _refuse_role()
    except ProgrammingError as error:
        if not isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
            raise
        _refuse_role()


class _Migrate(Migrate):
    """Django's migrate command that runs all migrations in one transaction."""

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        super().migration_progress_callback(action, migration, fake)
        if action == "apply_start":
            # a table cannot be altered while references of its new rows are still to be checked
            execute("SET CONSTRAINTS ALL IMMEDIATE")
            execute("SET CONSTRAINTS ALL DEFERRED")


def before_migrations(plan: Iterable[tuple[Migration, bool]]) -> None:
    """Prepare a backward migration; ``plan`` has migrations, each with whether it is reversed.

    The current code needs all its columns, which exist only before the first step, so a migration cannot do
    this. If the database was already reversed by some steps, the preparation was done then.
    """
    is_back = any(
        (step.app_label, step.name) == _FIRST_WITH_RECORDED and backwards for step, backwards in plan
    )
    if is_back and not database_version.is_older():
        with transaction.atomic():
            former_versions.store_changes()


def _refuse_role() -> NoReturn:
    [(role, name)] = fetch("SELECT current_user, current_database()")
    raise Refusal(
        f"The role {role} may not create tables in the database {name}. Make it the owner:"
        f" ALTER DATABASE {name} OWNER TO {role}, and if tables are there already, REASSIGN OWNED BY their owner."
    ) from None


def _reseal() -> None:
    """Seal all secrets with the present secret of the server, so that the former one is needed no longer."""
    with transaction.atomic():
        for reseal in registry.hooks(Hook.RESEAL):
            reseal()


def _declare_accounts(options: Options) -> None:
    try:
        if settings.FORMER_SECRET:
            _reseal()
        sealed_keys.check_secret()
        declarations.ensure(declared_accounts(options))
    except AccountError as error:
        raise Refusal(str(error)) from None

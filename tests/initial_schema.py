"""Write the script of storage.server.initial_schema again: python3 -m tests.initial_schema."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from storage.server.initial_schema import FILE
from tests.live_server import ROOT, clean_environment

FILLED = ("django_content_type", "auth_permission", "django_migrations")  # all that migrations fill
HEAD = "-- written by python3 -m tests.initial_schema\nSET LOCAL check_function_bodies = off;\n"
TAIL = (
    "SET LOCAL check_function_bodies = on;\nSET CONSTRAINTS ALL IMMEDIATE;\nSET CONSTRAINTS ALL DEFERRED;\n"
)
NOISE = re.compile(
    r"(?m)^(\\.*|--( (Name|Data for Name|PostgreSQL database|Dumped).*)?|SELECT pg_catalog\.set_config\('search_path'.*"
    r"|SET (statement_timeout|lock_timeout|idle_in_transaction_session_timeout|transaction_timeout|client_encoding"
    r"|standard_conforming_strings|check_function_bodies|xmloption|client_min_messages|row_security"
    r"|default_tablespace|default_table_access_method) = .*;)\n"
)
APPLIED = re.compile(r"'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*\+00'\)")  # the time of a migration


def read_schema(pg_dump: Callable[..., str]) -> str:
    schema = NOISE.sub("", pg_dump("--schema-only", "--no-owner", "--no-privileges"))
    return re.sub(r"\n{2,}(?=[A-Z])", "\n\n", schema)


def read_database(pg_dump: Callable[..., str]) -> str:
    """Return the script of a database, by a function that runs pg_dump with options."""
    tables = [f"--table=public.{name}" for name in FILLED]
    rows = pg_dump("--data-only", "--rows-per-insert=1000", *tables)
    return HEAD + read_schema(pg_dump) + APPLIED.sub("now())", NOISE.sub("", rows)) + TAIL


def main() -> None:
    FILE.write_text("")  # by migrations only
    with tempfile.TemporaryDirectory(prefix="tablero-") as folder:
        Path(folder).chmod(0o711)  # for the PostgreSQL of root, which is another user
        environ = {**clean_environment(), "TABLERO_DATA": f"{folder}/data"}

        def manage(*arguments: str) -> str:
            command = [sys.executable, str(ROOT / "manage.py"), *arguments]
            return subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout

        manage("check")  # makes a database
        manage("upgrade")
        FILE.write_text(read_database(lambda *options: manage("pg", "pg_dump", *options)))


if __name__ == "__main__":
    main()

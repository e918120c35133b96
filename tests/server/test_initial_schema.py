"""The script for new databases makes what the migrations make."""

import re
import subprocess
import sys
from difflib import unified_diff

import psycopg
import pytest
from psycopg import sql

from storage.server import installation
from storage.server.initial_schema import FILE
from tests.initial_schema import read_schema
from tests.live_server import ROOT, clean_environment

WRITTEN = """
SELECT app, name, '' FROM django_migrations UNION ALL SELECT app_label, model, '' FROM django_content_type
UNION ALL SELECT app_label, codename, name FROM auth_permission JOIN django_content_type AS t ON t.id = content_type_id
ORDER BY 1, 2, 3
"""


@pytest.mark.long
def test_the_script_makes_what_the_migrations_make(postgres):
    migrations, script = (make(postgres, name) for name in ("by_migrations", "by_script"))
    differences = "\n".join(unified_diff(migrations, script, n=0, lineterm=""))
    assert not differences, differences


def make(postgres, name):
    """Make a database; migrations that are newer than the script run after it."""
    with psycopg.connect(**postgres, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    connected = {**postgres, "dbname": name}
    if name == "by_script":
        with psycopg.connect(**connected) as connection:
            connection.execute(FILE.read_text())
    url = f"postgresql://{postgres['user']}@/{name}?host={postgres['host']}"
    environ = {**clean_environment(), "DATABASE_URL": url}
    subprocess.run([sys.executable, ROOT / "manage.py", "upgrade"], env=environ, check=True)
    with psycopg.connect(**connected) as connection:
        written = connection.execute(WRITTEN).fetchall()
    with psycopg.connect(**postgres, autocommit=True) as connection:
        schema = read_schema(lambda *options: dump(connected, *options))
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
    # PostgreSQL moves the cast of a list to its elements when it reads what it has written
    schema = re.sub(r"\(('\w+'::character varying)\)::text", r"\1", schema)
    schema = re.sub(r"\((ARRAY\[[^]]*\])\)::text\[\]", r"\1", schema)
    return [*schema.splitlines(), *map(str, written)]


def dump(connected, *options):
    where = ["--host", connected["host"], "--username", connected["user"], connected["dbname"]]
    command = [installation.packaged_programs() / "pg_dump", *options, *where]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

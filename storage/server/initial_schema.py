"""Schema of a new embedded database as one script, equivalent to all migrations up to some version.

Newer migrations run after the script as on any older database: if it is outdated, the first start takes
longer. `python3 -m tests.initial_schema` regenerates it.
"""

from pathlib import Path
from typing import Final

from storage.sql.django import execute

FILE: Final = Path(__file__).with_suffix(".sql")


def create() -> None:
    """Create the tables in an empty database, in a transaction; requires the bundled PostgreSQL."""
    execute(FILE.read_text(encoding="utf-8"))

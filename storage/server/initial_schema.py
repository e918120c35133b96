"""The tables of a new embedded database by one script, which is what all migrations until some version make.

Migrations that are newer than the script run after it, as on any older database: it may be out of date, and then a
first start takes longer. `python3 -m tests.initial_schema` writes it again.
"""

from pathlib import Path
from typing import Final

from storage.sql.django import execute

FILE: Final = Path(__file__).with_suffix(".sql")


def create() -> None:
    """Create the tables in an empty database, in a transaction; the PostgreSQL must be the one we bring."""
    execute(FILE.read_text(encoding="utf-8"))

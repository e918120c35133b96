"""Data folders of another PostgreSQL that cannot be converted; test_releases.py converts one."""

import shutil
from collections import namedtuple

import pytest

from storage.server import embedded, options, postgresql_upgrade
from storage.server.refusal import Refusal

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def written_by(used):
    """Make the data folder look as if another version had written it."""

    def written_by(version):
        (used / "database" / "PG_VERSION").write_text(f"{version}\n")
        return options.read({"TABLERO_DATA": str(used)})

    return written_by


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(9, "To convert it, start the server or run: tablero upgrade"), (99, "or a newer one")],
)
def test_commands_do_not_start_it(written_by, version, remedy):
    with (
        pytest.raises(
            Refusal, match=f"was written by PostgreSQL {version}, and this Tablero brings .*{remedy}"
        ),
        embedded.attached(written_by(version), purpose="doctor", say=print),
    ):
        pass


def test_programs_of_the_old_version_are_needed(written_by):
    with pytest.raises(Refusal, match="the programs of PostgreSQL 9 are needed too: install them"):
        postgresql_upgrade.convert(written_by(9), print)


def test_a_copy_needs_room(written_by, used, monkeypatch):
    result = written_by(16)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 0))
    with pytest.raises(
        Refusal, match=r"too full to convert the database: 0 MiB are free|programs of PostgreSQL 16"
    ):
        postgresql_upgrade.convert(result, print)
    assert (used / "database" / "PG_VERSION").read_text() == "16\n"


def test_an_exchange_that_was_interrupted_is_completed(used):
    """Killed after the old database was moved away, before the converted one was there."""
    (used / "database").rename(used / "database.converted")
    result = options.read({"TABLERO_DATA": str(used)})
    postgresql_upgrade.convert(result, print)
    with embedded.attached(result, purpose="doctor", say=print):
        pass

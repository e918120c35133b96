"""`manage.py pg` where it must refuse; tests/docs runs it as the documentation does."""

import subprocess
import sys

import pytest

from tests.live_server import ROOT, clean_environment


def pg(*arguments, **environment):
    command = [sys.executable, str(ROOT / "manage.py"), "pg", *arguments]
    return subprocess.run(
        command,
        env={**clean_environment(), **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "message"),
    [({}, "There is no database in"), ({"DATABASE_URL": "postgresql://db.example.org/t"}, "DATABASE_URL")],
)
def test_refuses_without_an_embedded_database(tmp_path, environment, message):
    done = pg("--data", str(tmp_path / "typo"), "psql", **environment)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "typo").exists()


def test_a_failure_of_the_program_is_one_of_the_command(used):
    assert pg("--data", str(used), "psql", "--command", "SELECT 1/0").returncode == 1
    assert pg("--data", str(used), "psql", "--tuples-only", "--command", "SELECT 6*7").stdout.strip() == "42"
    assert "no-such-program cannot be run" in pg("--data", str(used), "no-such-program").stderr

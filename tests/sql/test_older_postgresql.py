"""Behaviour that depends on the version of PostgreSQL, on an older one: where Debian's packages of 15 to 17 are
installed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = [
    version for version in (15, 16, 17) if Path(f"/usr/lib/postgresql/{version}/bin/postgres").exists()
]
TESTS = ["tests/sql/test_entities.py", "tests/sql/test_batch.py", "tests/history/test_without_history.py"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS or [None])
def test_writes_work_on_it_without_history(version):
    if version is None:
        pytest.skip("no older PostgreSQL is installed")
    environ = {**os.environ, "TEST_POSTGRESQL": f"/usr/lib/postgresql/{version}/bin"}
    command = [sys.executable, "manage.py", "test", *TESTS, "--fast", "-q", "-n0", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "passed" in done.stdout

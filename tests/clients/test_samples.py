"""Samples in the console run as they are."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.accounts.connection_strings import read_sample
from tests.live_server import LiveServer

EXPECTED = "ada Ada Lovelace\n"


def run(program: str, folder: Path, *command: str) -> str:
    (folder / "sample.mjs").write_text(program)
    finished = subprocess.run(
        [*command, "sample.mjs"], cwd=folder, capture_output=True, text=True, timeout=180, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.parametrize("run_number", [1, 2])  # also when the table is there already
def test_python(server: LiveServer, tmp_path: Path, run_number: int) -> None:
    assert run(read_sample("python") % server.connection_string, tmp_path, sys.executable) == EXPECTED


@pytest.mark.long
@pytest.mark.parametrize("run_number", [1, 2])
def test_javascript(
    server: LiveServer, tmp_path: Path, sdk_folder: Path, require: Callable[[str, str], str], run_number: int
) -> None:
    (tmp_path / "node_modules").symlink_to(sdk_folder / "node_modules")
    node = require("node", "the JavaScript SDK")
    assert run(read_sample("javascript") % server.connection_string, tmp_path, node) == EXPECTED


def test_samples_have_one_connection_string_placeholder() -> None:
    for name in ("python", "javascript", "csharp", "go", "compose"):
        assert read_sample(name).count("%") == 1

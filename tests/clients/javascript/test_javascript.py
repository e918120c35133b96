"""Runs the checks of the JavaScript SDK: each is a test here, all run in one process of Node."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from tests.conftest import missing
from tests.live_server import LiveServer

HERE = Path(__file__).parent
PACKAGE = json.loads((HERE / "package.json").read_text())
VERSION = PACKAGE["dependencies"]["@azure/data-tables"]
NAMES = [
    name
    for file in sorted(HERE.glob("*.mjs"))
    for name in re.findall(r'^check\("(.+)",', file.read_text(), re.MULTILINE)
]
INSTALL_TIMEOUT = 300
RUN_TIMEOUT = 120


@pytest.fixture(scope="session")
def outcomes(
    sdk_folder: Path, server: LiveServer, require: Callable[[str, str], str]
) -> dict[str, str | None]:
    """How each check ended: None, or what went wrong."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "SDK_FOLDER": str(sdk_folder),
        "TABLE_ENDPOINT": server.endpoint,
        "TABLE_ACCOUNT": server.account,
        "TABLE_KEY": server.key,
    }
    finished = subprocess.run(
        [require("node", "the JavaScript SDK"), str(HERE / "main.mjs")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT,
    )
    assert finished.returncode == 0, finished.stderr
    reports = [json.loads(line) for line in finished.stdout.splitlines()]
    return {report["name"]: report["failure"] for report in reports}


@pytest.fixture(scope="session")
def sdk_folder(require: Callable[[str, str], str]) -> Path:
    """Where the SDK is installed: a cache of this user, filled once."""
    folder = user_cache_path("tablero") / "npm" / f"data-tables-{VERSION}"
    if not folder.exists():
        install(folder, require("npm", "the JavaScript SDK"))
    return folder


def install(folder: Path, npm: str) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # beside its place, so that a folder of that name is always complete
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        shutil.copy(HERE / "package.json", unfinished)
        run_npm(npm, unfinished)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def run_npm(npm: str, folder: Path) -> None:
    command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT
        )
    except subprocess.CalledProcessError as failed:
        missing(f"npm cannot install the JavaScript SDK: {failed.stderr.strip()[:300]}")
    except subprocess.TimeoutExpired:
        missing("npm cannot install the JavaScript SDK: it takes too long")


@pytest.mark.parametrize("name", NAMES)
def test_check(outcomes: dict[str, str | None], name: str) -> None:
    failure = outcomes[name]

    assert failure is None, failure


def test_every_check_is_known(outcomes: dict[str, str | None]) -> None:
    assert set(outcomes) == set(NAMES)
    assert len(NAMES) == len(set(NAMES))

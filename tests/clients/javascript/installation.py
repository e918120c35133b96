"""Installs the npm packages that a `package.json` names: the JavaScript SDKs, or what another test needs."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.programs import missing

PACKAGE = Path(__file__).parent / "package.json"
DEPENDENCIES = json.loads(PACKAGE.read_text())["dependencies"]
VERSIONS = "-".join(f"{name.rpartition('/')[2]}-{version}" for name, version in DEPENDENCIES.items())
INSTALL_TIMEOUT = 300


def install(folder: Path, npm: str, package: Path = PACKAGE) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # beside its place, so that a folder of that name is always complete
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        shutil.copy(package, unfinished)
        run_npm(npm, unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.exists():  # another process was first
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def run_npm(npm: str, folder: Path) -> None:
    command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT
        )
    except subprocess.CalledProcessError as failed:
        missing(f"npm cannot install the packages: {failed.stderr.strip()[:300]}")
    except subprocess.TimeoutExpired:
        missing("npm cannot install the packages: it takes too long")

"""The wheel of this source, built in a copy, since building leaves files behind."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.live_server import ROOT

SOURCES = (".package", "console", "docs", "static", "storage", "templates")
_BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def make_wheel(folder: Path) -> Path:
    """Build the wheel in a new folder, beside the copy."""
    copy = folder / "copy"
    for name in SOURCES:
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    command = [sys.executable, "-W", "ignore", "-c", _BUILD, str(folder)]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("tablero-*.whl"))

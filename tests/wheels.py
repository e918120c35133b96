"""The wheel of this source, built in a copy, since building leaves files behind."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
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
    return build_wheel(copy, folder)


def build_wheel(source: Path, folder: Path, environment: Mapping[str, str] | None = None) -> Path:
    """Build the wheel of a source, where the build leaves files, with permissions that depend on nothing else."""
    command = [sys.executable, "-W", "ignore", "-c", _BUILD, str(folder.absolute())]
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False, umask=0o022
    )
    if done.returncode:
        raise SystemExit(f"The wheel cannot be built: {done.stderr}")
    return folder / done.stdout.split()[-1]

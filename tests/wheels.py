"""The wheel of this source."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.live_server import ROOT

_BUILD = "import sys; from hatchling import build; print(build.build_wheel(sys.argv[1]))"


def build_wheel(folder: Path, source: Path = ROOT, environment: Mapping[str, str] | None = None) -> Path:
    """Build the wheel of a source in a folder; its permissions depend on nothing else."""
    command = [sys.executable, "-c", _BUILD, str(folder.absolute())]
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False, umask=0o022
    )
    if done.returncode:
        raise SystemExit(f"The wheel cannot be built: {done.stderr}")
    return folder / done.stdout.split()[-1]

"""The code of a release, from the history of this repository."""

import io
import subprocess
import tarfile
from pathlib import Path

from tests import programs
from tests.live_server import ROOT
from tests.tools.releases.build import unpack

# subjects of the commits that keep the database of the release, whose code is the one that filled it
SUBJECTS = {"1.0.0": "releases: the database of 1.0.0, with its last migrations"}


def check_out(release: str, folder: Path) -> bool:
    """Write the code of a release into a folder; return False where the history does not have it."""
    commit = _git("log", "-1", "--format=%H", "--fixed-strings", f"--grep={SUBJECTS[release]}")
    if not commit:
        return False
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit.decode().strip()))) as files:
        unpack(files, folder)
    return True


def _git(*arguments: str) -> bytes:
    """Return what git prints, nothing if it fails."""
    git = programs.find("git")
    if git is None:
        return b""
    return subprocess.run([git, *arguments], cwd=ROOT, capture_output=True, check=False).stdout

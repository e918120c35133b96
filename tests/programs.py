"""The programs of the machine that tests, benchmarks and examples use, and where each is found.

`python3 -m tests.programs` prints the Debian packages that bring what is missing, one per line; with `--optional` those
of the optional programs. It needs the standard library only, so that it runs before anything is installed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# administrators' programs, missing in an ordinary user's path
MORE_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")

# text that may precede a command's name, including variables for it
_BEFORE = r"(?:^|[|&;(`]|\b(?:if|while|until|do|then|else|sudo|exec)\s)\s*(?:\w+=\S*\s+)*"


@dataclass(frozen=True)
class Program:
    """A program. Tests of an optional one are skipped in CI as well."""

    package: str  # Debian's; empty if CI does not install it
    names: tuple[str, ...] = ()  # the first that is installed is used; empty: its key in PROGRAMS
    files: tuple[str, ...] = ()  # patterns below /, for files that are not programs
    is_optional: bool = False


PROGRAMS = {
    "bash": Program("bash"),
    "chromium": Program(
        "chromium-headless-shell",
        (
            "chromium-headless-shell",
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
        ),
    ),
    "curl": Program("curl"),
    "faketime": Program("libfaketime", files=("usr/lib/*/faketime/libfaketimeMT.so.1",)),
    "git": Program("git"),
    "msgattrib": Program("gettext"),
    "msgfmt": Program("gettext"),
    "node": Program("nodejs"),
    "npm": Program("npm"),
    "pgbouncer": Program("pgbouncer"),
    "ssh-keygen": Program("openssh-client"),
    "xgettext": Program("gettext"),
    # not every distribution has them
    "caddy": Program("caddy", is_optional=True),
    "nginx": Program("nginx", is_optional=True),
    # programs for whole systems, which CI does not install
    "docker": Program("", is_optional=True),
    "fsck.ext4": Program("", is_optional=True),
    "kubectl": Program("", is_optional=True),
    "mkfs.ext4": Program("", is_optional=True),
    "podman": Program("", is_optional=True),
    "promtool": Program("", is_optional=True),
    "systemd-analyze": Program("", is_optional=True),
}


def find(name: str) -> str | None:
    """Return the path of a program, under whatever name this machine has it, or None if it is not installed."""
    program = PROGRAMS[name]
    for pattern in program.files:
        for path in sorted(Path("/").glob(pattern)):
            return str(path)
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *MORE_FOLDERS))
    names = () if program.files else program.names or (name,)
    return next((path for each in names if (path := shutil.which(each, path=folders))), None)


def get(name: str) -> str:
    """Return the path of a program, for a command that ends where it is not installed."""
    path = find(name)
    if path is None:
        raise SystemExit(f"{name} is not installed.")
    return path


def require(name: str, purpose: str) -> str:
    """Return the path of a program, or end the test: skipped with the reason, or failed in CI if CI has to have it."""
    path = find(name)
    if path is None:
        missing(f"{name} is not installed, which {purpose} needs", is_optional=PROGRAMS[name].is_optional)
    assert path is not None
    return path


def missing(reason: str, *, is_optional: bool = False) -> None:
    """End this test because the machine lacks something: skipped with the reason, or failed in CI."""
    import pytest

    if os.environ.get("CI") and not is_optional:
        pytest.fail(reason)
    pytest.skip(reason)


def checkout(purpose: str) -> str:
    """Return the path of git where the source is a clone; end the test where it is a copy of the files alone."""
    import pytest

    program = require("git", purpose)
    command = [program, "-C", str(Path(__file__).parents[1]), "rev-parse"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"the source is not a clone of git, which {purpose} needs")
    return program


def used_in(script: str) -> list[str]:
    """Return the programs of PROGRAMS that lines of a shell run."""
    return [
        name
        for name in sorted(PROGRAMS)
        if re.search(rf"{_BEFORE}{re.escape(name)}(?![\w./=-])", script, re.MULTILINE)
    ]


def absent_packages(*, is_optional: bool = False) -> Iterable[str]:
    """Return the Debian packages of programs that are missing."""
    return sorted(
        {
            program.package
            for name, program in PROGRAMS.items()
            if program.is_optional == is_optional and program.package and find(name) is None
        }
    )


if __name__ == "__main__":
    for package in absent_packages(is_optional="--optional" in sys.argv[1:]):
        print(package)

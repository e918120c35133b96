"""The programs of the machine that tests, benchmarks and examples use, and where each is found.

`python3 -m tests.tools` prints the Debian packages that bring what is missing, one per line; with `--optional` those of
the optional tools. It needs the standard library only, so that it runs before anything is installed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# of administrators, which an ordinary user's path does not have
MORE_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")

# what stands before the name of a command: also variables for it
_BEFORE = r"(?:^|[|&;(`]|\b(?:if|while|until|do|then|else|sudo|exec)\s)\s*(?:\w+=\S*\s+)*"


@dataclass(frozen=True)
class Tool:
    """``package`` is Debian's, empty if CI does not install it. Tests of an optional tool are skipped in CI as well."""

    package: str
    programs: tuple[str, ...] = ()  # the first that is installed is used; empty: the name of the tool
    files: tuple[str, ...] = ()  # patterns below /, for what is not a program
    is_optional: bool = False


TOOLS = {
    "bash": Tool("bash"),
    "chromium": Tool(
        "chromium-headless-shell",
        (
            "chromium-headless-shell",
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
        ),
    ),
    "curl": Tool("curl"),
    "faketime": Tool("libfaketime", files=("usr/lib/*/faketime/libfaketimeMT.so.1",)),
    "git": Tool("git"),
    "msgattrib": Tool("gettext"),
    "msgfmt": Tool("gettext"),
    "node": Tool("nodejs"),
    "npm": Tool("npm"),
    "pgbouncer": Tool("pgbouncer"),
    "ssh-keygen": Tool("openssh-client"),
    "xgettext": Tool("gettext"),
    # not every distribution has them
    "caddy": Tool("caddy", is_optional=True),
    "nginx": Tool("nginx", is_optional=True),
    # of whole systems, which CI does not install
    "docker": Tool("", is_optional=True),
    "fsck.ext4": Tool("", is_optional=True),
    "kubectl": Tool("", is_optional=True),
    "mkfs.ext4": Tool("", is_optional=True),
    "podman": Tool("", is_optional=True),
    "promtool": Tool("", is_optional=True),
    "systemd-analyze": Tool("", is_optional=True),
}


def find(name: str) -> str | None:
    """Return the path of a tool, under whatever name this machine has it, or None if it is not installed."""
    tool = TOOLS[name]
    for pattern in tool.files:
        for path in sorted(Path("/").glob(pattern)):
            return str(path)
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *MORE_FOLDERS))
    programs = () if tool.files else tool.programs or (name,)
    return next((path for program in programs if (path := shutil.which(program, path=folders))), None)


def get(name: str) -> str:
    """Return the path of a tool, for a command that ends where it is not installed."""
    path = find(name)
    if path is None:
        raise SystemExit(f"{name} is not installed.")
    return path


def require(name: str, purpose: str) -> str:
    """Return the path of a tool, or end the test: skipped with the reason, or failed in CI if CI has to have it."""
    path = find(name)
    if path is None:
        missing(f"{name} is not installed, which {purpose} needs", is_optional=TOOLS[name].is_optional)
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
    """Return the tools that lines of a shell run."""
    return [
        name
        for name in sorted(TOOLS)
        if re.search(rf"{_BEFORE}{re.escape(name)}(?![\w./=-])", script, re.MULTILINE)
    ]


def absent_packages(*, is_optional: bool = False) -> Iterable[str]:
    tools = {name: tool for name, tool in TOOLS.items() if tool.is_optional == is_optional and tool.package}
    return sorted({tool.package for name, tool in tools.items() if find(name) is None})


if __name__ == "__main__":
    for package in absent_packages(is_optional="--optional" in sys.argv[1:]):
        print(package)

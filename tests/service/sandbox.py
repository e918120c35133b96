"""Run a program within the limits of a unit of systemd, where no systemd runs.

    python3 -m tests.service.sandbox UNIT WRITABLE_FOLDER -- PROGRAM ARGUMENT...

Without arguments its exit status says whether the machine allows that.

It applies the unit's ProtectSystem=strict, UMask, CapabilityBoundingSet, NoNewPrivileges, SystemCallFilter,
MemoryDenyWriteExecute, RestrictAddressFamilies, RestrictNamespaces, RestrictRealtime and LockPersonality, with the
filters that systemd would load. It needs root, and runs the program as an unprivileged user.
"""

import ctypes
import errno
import os
import pwd
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from tests import programs

CLONE_NEWNS: Final = 0x00020000
# flags of cgroup, uts, ipc, user, pid, net, mount and time namespaces
NAMESPACES: Final = (
    0x02000000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
    CLONE_NEWNS,
    0x80,
)
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18
MOUNT_SETATTR, MOUNT_ATTR_RDONLY, AT_RECURSIVE, AT_FDCWD = 442, 1, 0x8000, -100
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 38, 24
CAP_LAST: Final = 40
CAP_NET_BIND_SERVICE: Final = 10
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
ALLOW, ERRNO, NOSYS = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
NOT_EQUAL, EQUAL, MASKED = 1, 4, 7

ROOT = Path(__file__).parents[2]
libc = ctypes.CDLL(None, use_errno=True)


class Comparison(ctypes.Structure):
    _fields_ = [
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    ]


def settings(unit: Path) -> dict[str, list[str]]:
    """Return the values of each setting of a unit, in order."""
    results: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            results.setdefault(name, []).append(value)
    return results


@cache
def calls(group: str) -> frozenset[str]:
    """Return the system calls of one of systemd's groups, such as @system-service."""
    told = subprocess.run(
        [programs.get("systemd-analyze"), "--no-pager", "syscall-filter", group],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.strip() for line in told.stdout.splitlines()[1:] if line.strip() and "#" not in line]
    return frozenset().union(*(calls(name) if name.startswith("@") else {name} for name in names))


def allowed_calls(filters: list[str]) -> frozenset[str]:
    """Return the calls permitted by SystemCallFilter= lines; the first line allows."""
    result: frozenset[str] = frozenset()
    for line in filters:
        named = frozenset().union(
            *(calls(name) if name.startswith("@") else {name} for name in line.removeprefix("~").split())
        )
        result = result - named if line.startswith("~") else result | named
    return result


class Filter:
    """A filter of system calls."""

    def __init__(self, default: int) -> None:
        self._library = ctypes.CDLL("libseccomp.so.2")
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.seccomp_init(default))

    def add(self, action: int, name: str, *comparisons: tuple[int, int, int, int]) -> None:
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return  # another architecture
        array = (Comparison * len(comparisons))(*(Comparison(*it) for it in comparisons))
        check(
            -self._library.seccomp_rule_add_array(self._context, action, number, len(comparisons), array),
            f"filter of {name}",
        )

    def load(self) -> None:
        check(-self._library.seccomp_load(self._context), "filters of system calls")


def check(error: int, what: str) -> None:
    if error:
        raise OSError(error, f"{what}: {os.strerror(error)}")


def call(result: int, what: str) -> None:
    check(ctypes.get_errno() if result < 0 else 0, what)


def protect_system(writable: list[str]) -> None:
    """Make every mount read-only but those of ``writable``, /dev and /proc."""
    enter_namespace()
    for path in writable:
        bind(Path(path), Path(path))
    seen = (sys.base_prefix, sys.prefix, ROOT, *sys.path)
    reveal({Path(it).resolve() for it in seen if Path(it).is_dir()})
    set_read_only("/", is_read_only=True)
    for path in (*writable, "/dev", "/proc"):
        set_read_only(path, is_read_only=False)


def reveal(paths: set[Path]) -> None:
    """Let others enter folders that only root may, such as a Python in root's home, as long as the mounts live."""
    folders = {folder for path in paths for folder in (path, *path.parents)}
    layers = Path("/mnt")
    cover(layers, [], "755")
    for number, folder in enumerate(sorted(folders)):
        mode = folder.stat().st_mode
        if not mode & 1:
            overlay(folder, layers / str(number), folder)
            folder.chmod(mode | 0o055)


def cover(folder: Path, shown: list[Path], mode: str) -> None:
    """Mount an empty folder over one, in which only these folders of it are left."""
    descriptors = {path: os.open(path, os.O_PATH) for path in shown}
    call(libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, f"mode={mode}".encode()), str(folder))
    for path, descriptor in descriptors.items():
        if not path.exists():
            path.mkdir(parents=True)
            bind(Path(f"/proc/self/fd/{descriptor}"), path)
        os.close(descriptor)


def bind(source: Path, target: Path) -> None:
    """Mount a folder at another place too, with everything mounted in it."""
    call(libc.mount(str(source).encode(), str(target).encode(), None, MS_BIND | MS_REC, None), str(target))


def enter_namespace() -> None:
    """Make mounts that end with this process."""
    call(libc.unshare(CLONE_NEWNS), "mount namespace")
    call(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")


def set_read_only(path: str, *, is_read_only: bool) -> None:
    attributes = (ctypes.c_uint64 * 4)(
        MOUNT_ATTR_RDONLY if is_read_only else 0, 0 if is_read_only else 1, 0, 0
    )
    call(
        libc.syscall(
            ctypes.c_long(MOUNT_SETATTR),
            ctypes.c_long(AT_FDCWD),
            path.encode(),
            ctypes.c_long(AT_RECURSIVE),
            attributes,
            ctypes.c_size_t(32),
        ),
        path,
    )


def become_nobody(kept_capabilities: set[int]) -> None:
    for capability in set(range(CAP_LAST + 1)) - kept_capabilities:
        call(libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "capabilities")
    user = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)


def restrict(unit: dict[str, list[str]]) -> None:
    """Load the filters, with which the program that is run next has to live."""
    call(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    denied = Filter(ALLOW)
    if unit["MemoryDenyWriteExecute"] == ["yes"]:
        both = PROT_WRITE | PROT_EXEC
        denied.add(ERRNO, "mmap", (2, MASKED, both, both))
        for name in ("mprotect", "pkey_mprotect"):
            denied.add(ERRNO, name, (2, MASKED, PROT_EXEC, PROT_EXEC))
        denied.add(ERRNO, "shmat", (2, MASKED, SHM_EXEC, SHM_EXEC))
    if unit["RestrictNamespaces"] == ["yes"]:
        denied.add(NOSYS, "clone3")
        for flag in NAMESPACES:
            denied.add(ERRNO, "clone", (0, MASKED, flag, flag))
            denied.add(ERRNO, "unshare", (0, MASKED, flag, flag))
        denied.add(ERRNO, "setns")
    families = {getattr(socket, name) for name in unit["RestrictAddressFamilies"][0].split()}
    for family in set(range(46)) - families:
        denied.add(ERRNO, "socket", (0, EQUAL, family, 0))
    if unit["RestrictRealtime"] == ["yes"]:
        for policy in (1, 2, 6):  # SCHED_FIFO, SCHED_RR and SCHED_DEADLINE
            denied.add(ERRNO, "sched_setscheduler", (1, EQUAL, policy, 0))
    if unit["LockPersonality"] == ["yes"]:
        denied.add(ERRNO, "personality", (0, NOT_EQUAL, 0, 0))
    allowed = Filter(ERRNO)
    # systemd itself needs execve to start the program
    for name in allowed_calls(unit["SystemCallFilter"]) | {"execve", "seccomp"}:
        allowed.add(ALLOW, name)
    denied.load()
    allowed.load()


def overlay(lower: Path, place: Path, target: Path) -> None:
    """Show at ``target`` what is in ``lower``, with changes that stay in ``place``."""
    for part in ("upper", "work"):
        (place / part).mkdir(parents=True)
    options = f"lowerdir={lower},upperdir={place}/upper,workdir={place}/work"
    call(libc.mount(b"overlay", str(target).encode(), b"overlay", 0, options.encode()), "overlay")


@cache
def can_be_limited() -> bool:
    """Return whether this machine permits mounts and system call filters, as systemd and containers use."""
    command = [sys.executable, "-m", "tests.service.sandbox"]
    return os.geteuid() == 0 and subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0


def try_limits() -> None:
    """Do what the sandbox and the container of the tests need; raises OSError where this is not allowed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.fork() == 0:
            status = 1
            try:
                enter_namespace()
                cover(folder, [], "755")
                (folder / "root").mkdir()
                overlay(Path("/"), folder, folder / "root")
                set_read_only(str(folder / "root"), is_read_only=True)
                Filter(ALLOW).load()
                status = 0
            finally:
                os._exit(status)
        if os.wait()[1]:
            sys.exit(1)


def main() -> None:
    if len(sys.argv) == 1:
        try_limits()
        return
    unit, folder, separator, *program = sys.argv[1:]
    assert separator == "--"
    result = settings(Path(unit))
    assert (result["ProtectSystem"], result["CapabilityBoundingSet"]) == (
        ["strict"],
        ["CAP_NET_BIND_SERVICE"],
    )
    protect_system([folder])
    become_nobody({CAP_NET_BIND_SERVICE})
    os.umask(int(result["UMask"][0], 8))
    restrict(result)
    os.execv(program[0], program)


if __name__ == "__main__":
    main()

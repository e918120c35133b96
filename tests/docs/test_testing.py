"""The page about tests: its examples run with a server of their own, which ends with them."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from tests.docs.pages import DOCS, blocks
from tests.live_server import ROOT, clean_environment
from tests.waiting import wait_for

pytestmark = pytest.mark.long
PAGE = DOCS / "testing.md"
WAITS = """
import time
from pathlib import Path

def test_waits(tablero):
    Path("folder").write_text(tablero.folder)
    time.sleep(60)
"""
UNREAD = """
import os, sys
from tablero_server import testing
reading, writing = os.pipe()
os.close(reading)
sys.stderr = os.fdopen(writing, "w", buffering=1)
lines = iter(["one\\n", "two\\n"])
testing._pass_on(lines)
print(list(lines), flush=True)
os._exit(0)
"""

BROKEN = """
from azure.data.tables import TableServiceClient

def test_people(tablero_account):
    service = TableServiceClient.from_connection_string(tablero_account.connection_string)
    people = service.create_table("people")
    for number in range(20):
        people.create_entity({"PartitionKey": "se", "RowKey": f"{number:02}"})
    with tablero_account.rehearse("short-pages", seed=2) as run:
        for number in range(3):
            list(next(people.query_entities(f"RowKey ne '{number}'").by_page()))
    run.check()
"""


@pytest.fixture(scope="module")
def environment(scratch: Path) -> Mapping[str, str]:
    cache = scratch / "cache"
    cache.mkdir(mode=0o711)
    return {**clean_environment(), "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    before = folders()
    yield
    wait_for(lambda: folders() <= before)


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"tablero-tests-{os.getuid()}-*"))


def pytest_command(*arguments: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tablero_server.pytest_plugin",
        "-p",
        "no:django",
        "-q",
        *arguments,
    ]


# as strict as Python gets, in a shell of another project of Django
STRICT = {"PYTHONDEVMODE": "1", "DJANGO_SETTINGS_MODULE": "shop.settings"}


@pytest.fixture
def strict_project(tmp_path: Path) -> Path:
    """Make a project whose pytest is as strict as ours: a warning is an error, also for unclosed resources."""
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert ours["filterwarnings"] == ["error"]
    strict = ("filterwarnings", "asyncio_mode", "asyncio_default_fixture_loop_scope", "xfail_strict")
    options = {name: ours[name] for name in strict}
    options["addopts"] = [option for option in ours["addopts"] if option.startswith("--strict")]
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    (tmp_path / "pyproject.toml").write_text("\n".join(["[tool.pytest.ini_options]", *lines]))
    return tmp_path


def run(command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180, check=False
    )


@pytest.mark.usefixtures("nothing_is_left")
def test_pytest(environment: Mapping[str, str], strict_project: Path) -> None:
    for number, program in enumerate(blocks(PAGE, "python")):
        (strict_project / f"test_{number}.py").write_text(program)
    for workers in ("2", "0"):
        done = run(pytest_command("-n", workers), strict_project, {**environment, **STRICT})
        assert done.returncode == 0, done.stdout + done.stderr
        assert "8 passed" in done.stdout
        assert "Warning" not in done.stdout + done.stderr


@pytest.mark.usefixtures("nothing_is_left")
def test_a_rehearsal_finds_a_client_that_reads_one_page(
    environment: Mapping[str, str], strict_project: Path
) -> None:
    (strict_project / "test_broken.py").write_text(BROKEN)
    done = run(pytest_command("-n", "0"), strict_project, {**environment, **STRICT})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "AssertionError: Not held under short-pages (seed 2):" in done.stdout
    assert "by_page()" in done.stdout  # the remedy


@pytest.mark.usefixtures("nothing_is_left")
def test_python(environment: Mapping[str, str], tmp_path: Path) -> None:
    [example] = blocks(PAGE, "pycon")
    (tmp_path / "example.txt").write_text(example)
    command = [sys.executable, "-W", "error", "-m", "doctest", "example.txt"]
    done = run(command, tmp_path, {**environment, **STRICT})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_server_reports_why_it_does_not_start(environment: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")  # where a folder is needed
    program = "from tablero_server import testing\nwith testing.join():\n    pass\n"
    command = [sys.executable, "-W", "error", "-c", program]
    done = run(command, tmp_path, {**environment, **STRICT, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 1
    assert "The server for the tests did not start" in done.stderr
    assert "Warning" not in done.stderr


@pytest.mark.usefixtures("nothing_is_left")
def test_a_killed_run_leaves_nothing(environment: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_waits.py").write_text(WAITS)
    with subprocess.Popen(
        pytest_command("-n", "0"), cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL
    ) as run:
        wait_for(lambda: (tmp_path / "folder").exists() and (tmp_path / "folder").read_text() != "")
        run.send_signal(signal.SIGKILL)
    folder = (tmp_path / "folder").read_text()
    wait_for(
        lambda: (
            not any(folder in " ".join(it.info["cmdline"] or ()) for it in psutil.process_iter(["cmdline"]))
        )
    )


def test_a_symlinked_folder_is_refused(environment: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    name = f"tablero-tests-{os.getuid()}-{hashlib.sha256(b'run').hexdigest()[:12]}"
    (tmp_path / name).symlink_to("own")
    done = subprocess.run(
        [sys.executable, "-m", "tablero_server.testing", "--run", "run"],
        env={**environment, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "is no folder" in done.stderr
    assert not list((tmp_path / "own").iterdir())


def test_a_server_with_unread_output_goes_on(environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNREAD], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.usefixtures("nothing_is_left")
def test_node(
    environment: Mapping[str, str], tmp_path: Path, sdk_folder: Path, require: Callable[[str, str], str]
) -> None:
    (tmp_path / "node_modules").symlink_to(sdk_folder / "node_modules")
    module, example = blocks(PAGE, "javascript")
    (tmp_path / "tablero.mjs").write_text(module)
    for name in ("one", "two"):
        (tmp_path / f"{name}.test.mjs").write_text(example)
    done = subprocess.run(
        [require("node", "the JavaScript SDK"), "--test"],
        cwd=tmp_path,
        env={**environment, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass 4\n" in done.stdout


# a rejected promise without a handler, or a pending one, would end Node with another message
START = """
import { startTablero } from "./tablero.mjs";
try {
  await startTablero();
} catch (error) {
  console.log(error.message);
}
"""


@pytest.mark.parametrize(
    ("python", "reason"),
    [
        (
            "#!/bin/sh\necho No module named tablero_server >&2; exit 1\n",
            "status 1: No module named tablero_server",
        ),
        ("#!/bin/sh\nkill -9 $$\n", "Tablero ended with status null"),
        (None, "spawn python3 ENOENT"),
    ],
)
def test_node_reports_why_no_server_runs(
    tmp_path: Path, require: Callable[[str, str], str], python: str | None, reason: str
) -> None:
    (tmp_path / "tablero.mjs").write_text(blocks(PAGE, "javascript")[0])
    (tmp_path / "start.mjs").write_text(START)
    if python is not None:
        (tmp_path / "python3").write_text(python)
        (tmp_path / "python3").chmod(0o755)
    done = run([require("node", "the example"), "start.mjs"], tmp_path, {"PATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert reason in done.stdout

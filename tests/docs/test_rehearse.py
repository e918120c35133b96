"""The page about rehearsals: its tables are those of the code, and its programs run under rehearsals."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from storage.rehearsal.findings import FindingKind
from storage.rehearsal.rules import EFFECTS, Parameter, When, dump_rules, read_rules
from storage.rehearsal.sets import READY
from tablero_server import testing
from tests import forked
from tests.docs.pages import DOCS, blocks, rows
from tests.live_server import ROOT, LiveServer, clean_environment

PAGE = DOCS / "rehearse.md"
TESTING = DOCS / "testing.md"


def test_the_ready_sets() -> None:
    assert rows(PAGE, "Ready sets") == [[f"`{one.name}`", one.text] for one in READY.values()]


def describe(name: str, form: Parameter) -> str:
    if form.choices:
        return f"`{name}`: " + ", ".join(f"`{choice}`" for choice in form.choices)
    unit = form.unit and f" {form.unit}"
    return f"`{name}`: {form.least:,g} to {form.most:,g}{unit}, {form.default:,g}"


def test_the_effects_and_their_parameters() -> None:
    assert rows(PAGE, "Effects") == [
        [
            f"`{effect}`",
            form.text,
            "; ".join(describe(name, it) for name, it in form.parameters.items()) or "none",
        ]
        for effect, form in EFFECTS.items()
    ]


def test_the_conditions() -> None:
    assert [row[0] for row in rows(PAGE, "Conditions")] == [f"`{name}`" for name in When.__slots__]


def test_the_findings() -> None:
    assert [row[0] for row in rows(PAGE, "Findings")] == [f"`{kind}`" for kind in FindingKind]


@pytest.mark.parametrize("written", [json.loads(block) for block in blocks(PAGE, "json")])
def test_the_rules_shown_are_read(written: object) -> None:
    assert dump_rules(read_rules(written)) != []


# the programs


@pytest.fixture(scope="module")
def token(server: LiveServer) -> str:
    """Return a token of an admin for the management API."""
    server.manage("user", "add", "rehearser", "--admin")
    return server.add_token("rehearser", "rehearsals")


def run(command: list[str], folder: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {
        **clean_environment(),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        **variables,
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180, check=False
    )


def lines_of(text: str) -> list[str]:
    """Return the lines of a report, with the same words for times, IDs of requests and versions."""
    text = re.sub(r"^(E |#)? *", "", text, flags=re.MULTILINE)
    text = re.sub(r"x-ms-request-id: [0-9a-f, -]+", "x-ms-request-id: …", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", "…", text)
    return re.sub(r"^(azsdk-[a-z-]+)/.*\), ", r"\1, ", text, flags=re.MULTILINE).splitlines()


def write_programs(folder: Path) -> tuple[Path, str]:
    """Write the broken program and its test; return its file, and the text of the repaired program."""
    broken, test, repaired = blocks(PAGE, "python")
    (folder / "orders.py").write_text(broken)
    (folder / "test_orders.py").write_text(test)
    return folder / "orders.py", repaired + broken[broken.index("\n\ndef main") :]


@pytest.mark.long
def test_the_commands(server: LiveServer, tmp_path: Path) -> None:
    program, repaired = write_programs(tmp_path)
    account = server.account
    server.change_accounts("rehearsals", account, "on")
    [shown] = [block for block in blocks(PAGE, "console") if "--report" in block]
    commands = [line.removeprefix("$ ").split() for line in shown.splitlines() if line.startswith("$ ")]
    start, stop = [command[2:] for command in commands if "rehearse" in command]

    def rehearse(text: str) -> tuple[int, str]:
        program.write_text(text.replace("UseDevelopmentStorage=true", server.connection_string))
        started = server.manage(*start)
        done = run([sys.executable, str(program)], tmp_path, {})
        time.sleep(testing.SILENCE)  # less than a command takes to start, which is forked here
        status, report, errors = forked.run_command(server.data, *stop)
        return status, started + done.stderr + report + errors

    status, said = rehearse(program.read_text())
    assert status == 1, said
    expected = [line for line in lines_of(shown) if line != "..." and not line.startswith("$ ")]
    assert [line for line in expected if line not in lines_of(said)] == [], said
    status, said = rehearse(repaired)
    assert status == 0, said
    assert "Gone since the rehearsal before: insert-repeated" in said


@pytest.mark.long
def test_the_python_programs(server: LiveServer, token: str, tmp_path: Path) -> None:
    program, repaired = write_programs(tmp_path)
    finding, _ = blocks(PAGE, "text")
    plugins = ["-p", "tablero_server.pytest_plugin", "-p", "no:django", "-p", "no:cacheprovider"]
    command = [sys.executable, "-B", "-m", "pytest", "-q", *plugins]
    variables = {"TABLERO_TEST_URL": server.url, "TABLERO_TEST_TOKEN": token}
    done = run(command, tmp_path, variables)
    assert done.returncode == 1, done.stdout + done.stderr
    printed = lines_of(done.stdout)
    assert [line for line in lines_of(finding) if line not in printed] == [], done.stdout
    # in CI, pytest prints it in its summary again
    assert len({line for line in printed if line.startswith("- ")}) == 1, done.stdout
    program.write_text(repaired)
    done = run(command, tmp_path, variables)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_the_javascript_programs(
    server: LiveServer, token: str, tmp_path: Path, sdk_folder: Path, require: Callable[[str, str], str]
) -> None:
    broken, test, repaired = blocks(PAGE, "javascript")
    _, finding = blocks(PAGE, "text")
    (tmp_path / "node_modules").symlink_to(sdk_folder / "node_modules")
    (tmp_path / "tablero.mjs").write_text(blocks(TESTING, "javascript")[0])
    (tmp_path / "totals.test.mjs").write_text(test)
    node = require("node", "the JavaScript SDK")
    with closing(testing.use(server.url, token)) as service:

        def run_test(program: str) -> subprocess.CompletedProcess[str]:
            account = service.create_account()
            (tmp_path / "totals.mjs").write_text(program)
            described = {
                "url": server.url,
                "token": token,
                "account": account.name,
                "connectionString": account.connection_string,
            }
            # in the place of python3, as the server is started already
            (tmp_path / "described.json").write_text(json.dumps(described) + "\n")
            (tmp_path / "python3").write_text("#!/bin/sh\ncat described.json -\n")
            (tmp_path / "python3").chmod(0o755)
            try:
                return run(
                    [node, "--test"], tmp_path, {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
                )
            finally:
                account.delete()

        done = run_test(broken)
        assert done.returncode == 1, done.stdout + done.stderr
        printed = [line for line in lines_of(done.stdout) if line.startswith("A query of")]
        assert printed == lines_of(finding), done.stdout
        done = run_test(repaired)
        assert done.returncode == 0, done.stdout + done.stderr

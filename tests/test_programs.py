"""Programs of the machine: found in one place, under any of their names, and skipped with a reason where they lack."""

import ast
import subprocess
import sys

import pytest

from tests import programs
from tests.live_server import ROOT
from tests.programs import PROGRAMS

RUNNERS = {"run", "Popen", "check_call", "check_output", "call"}
SHORT = {"command", "line"}  # variables that hold the words of a command


def make_program(folder, name):
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Remove all programs except those that a test puts into the folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "MORE_FOLDERS", ())
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


@pytest.mark.parametrize("name", ["chromium", "chromium-headless-shell", "google-chrome"])
def test_a_program_is_found_under_each_of_its_names(bare, name):
    assert programs.find("chromium") is None
    path = make_program(bare, name)
    assert programs.find("chromium") == path
    assert "chromium-headless-shell" not in programs.absent_packages()


def test_tests_of_missing_programs_are_skipped_with_a_reason_and_fail_in_ci(bare, monkeypatch):
    reason = "git is not installed, which the example needs"
    with pytest.raises(pytest.skip.Exception, match=reason):
        programs.require("git", "the example")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=reason):
        programs.require("git", "the example")
    with pytest.raises(pytest.skip.Exception):
        programs.require("kubectl", "the example")  # CI does not install it
    assert programs.require("git", "the example") if make_program(bare, "git") else None


def test_the_command_prints_a_package_per_line_and_nothing_where_none_is_missing(bare):
    def packages():
        command = [sys.executable, "-m", "tests.programs"]
        return subprocess.run(
            command, cwd=ROOT, env={"PATH": str(bare)}, check=True, capture_output=True, text=True
        ).stdout

    assert "chromium-headless-shell\n" in packages()
    for name in PROGRAMS:
        make_program(bare, name)
    assert set(packages().splitlines()) <= {"libfaketime"}  # a library instead of a program


def test_packages_of_what_is_missing_are_named_once(bare):
    absent = programs.absent_packages()
    assert {"git", "curl", "nodejs", "npm", "gettext", "chromium-headless-shell"} <= set(absent)
    assert len(absent) == len(set(absent))
    assert "" not in absent and "nginx" not in absent
    assert programs.absent_packages(is_optional=True) == ["caddy", "nginx"]


@pytest.mark.parametrize(
    ("script", "used"),
    [
        ("curl --fail x | node -e 'y'", ["curl", "node"]),
        ('branch=$(git branch)\nif curl x; then\n  echo "a; b"\nfi', ["curl", "git"]),
        ("python3 manage.py account add curl", []),
        ("A=1 B=2 curl x", ["curl"]),
        ("curl=1; ./curl; node-gyp", []),
        ("sudo nginx -t && exec caddy run", ["caddy", "nginx"]),
    ],
)
def test_examples_need_the_programs_that_they_run(script, used):
    assert programs.used_in(script) == used


def test_a_copy_without_git_is_not_a_checkout(bare, monkeypatch):
    git = bare / "git"
    git.write_text("#!/bin/sh\nexit 128\n")
    git.chmod(0o755)
    with pytest.raises(pytest.skip.Exception, match="not a clone of git, which a release needs"):
        programs.checkout("a release")


def modules():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.name not in {"programs.py", "test_programs.py"}:
            yield path, ast.parse(path.read_text())


def name_of(call):
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_no_test_looks_for_a_program_or_runs_one_by_its_name():
    """A program that is missing, or has another name, would be an error of that test."""
    known = {*PROGRAMS, *(name for program in PROGRAMS.values() for name in program.names)} - {"bash"}
    wrong = []
    for path, tree in modules():
        commands = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                if name_of(node) == "which" and isinstance(node.args[0], ast.Constant):
                    commands.append(node.args[0])
                if name_of(node) in RUNNERS and node.args:
                    commands += [node.args[0], *getattr(node.args[0], "elts", [])[:1]]
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in SHORT:
                commands += getattr(node.value, "elts", [])[:1]
        for word in commands:
            text = word.value if isinstance(word, ast.Constant) and isinstance(word.value, str) else ""
            if text.rpartition("/")[2] in known:
                wrong.append(f"{path.relative_to(ROOT)}:{word.lineno}: {text}")
    assert wrong == []

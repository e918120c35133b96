"""A new subject, made in a copy of the checkout: it is in the registry, imports, and keeps the contracts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storage.core import registry
from storage.management.new_subject import NotMade, make_subject
from tests import rooms
from tests.live_server import ROOT

ABOUT = "Gadgets that nobody needs."
IMPORT = """
import django
django.setup()
from django.urls import get_resolver
from storage.core import registry
from console.gadgets import urls

assert any(pattern.urlconf_name is urls for pattern in get_resolver().url_patterns if hasattr(pattern, "app_name"))
assert registry.subjects()[registry.SUBJECTS.index("gadgets")].name == "gadgets"
print(*registry.SUBJECTS)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("console", "static", "storage", "templates", "tablero_server"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def run(folder: Path, *command: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "PYTHONPATH": ".",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_new_subject_is_whole(checkout):
    command = [sys.executable, "manage.py", "newsubject", "gadgets", ABOUT, "--above", "comments", "--pages"]
    out = run(checkout, *command)
    assert "storage/gadgets/subject.py\n" in out and "console/gadgets/urls.py\n" in out
    names = run(checkout, sys.executable, "-c", IMPORT).split()
    assert names.index("gadgets") == names.index("comments") + 1
    assert [name for name in names if name != "gadgets"] == list(registry.SUBJECTS)
    assert rooms.describe("storage", "gadgets", checkout) == ABOUT
    assert rooms.rooms("gadgets", checkout).keys() == {"storage", "console"}
    order = [name for layer in rooms.layers("storage", checkout) for name in layer]
    assert order.index("gadgets") == order.index("comments") - 1
    for tool in (["ruff", "format", "--check", "-q"], ["ruff", "check", "-q"]):
        run(checkout, sys.executable, "-m", *tool, "storage", "console")
    run(checkout, sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()")


@pytest.mark.parametrize(
    ("name", "about", "above", "reason"),
    [
        ("sql", ABOUT, "help", "exists already"),
        ("Gadgets", ABOUT, "help", "lower case"),
        ("class", ABOUT, "help", "lower case"),
        ("gadgets", ABOUT, "nothing", "no subject nothing"),
        ("gadgets", "Gadgets", "help", "full stop"),
    ],
)
def test_invalid_subjects_are_refused_without_changes(name, about, above, reason):
    before = (ROOT / "pyproject.toml").read_text()
    with pytest.raises(NotMade, match=reason):
        make_subject(ROOT, name, about, above=above, has_pages=True)
    assert not (ROOT / "storage" / "gadgets").exists()
    assert (ROOT / "pyproject.toml").read_text() == before

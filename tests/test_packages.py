"""The wheel holds what a checkout holds, and serves it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.live_server import ROOT
from tests.wheels import make_wheel

pytestmark = pytest.mark.slow
APPLICATION = "tablero/application/"  # only in the processes of Tablero on the path of modules
SERVE = """
import django
django.setup()
from django.template.loader import get_template
from django.utils import translation
from console.help import contents, documents, vendored
from console.site import static_files
import console, storage

assert get_template("console/help/about.html")
assert {static_files.STYLESHEET, "console/main.js"} <= set(static_files.files())
assert vendored.packages()
assert all(documents.read(name).content for name in contents.entries())
assert translation.gettext("Sign in") == "Sign in"
with translation.override("tr"):
    assert translation.gettext("Sign in") != "Sign in"
print(console.__file__, storage.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return make_wheel(tmp_path_factory.mktemp("wheel"))


def files(package):
    """The files of a package, and of the folders it links to."""
    found = [
        Path(folder) / name
        for folder, folders, names in os.walk(ROOT / package, followlinks=True)
        if "__pycache__" not in folder
        for name in names
    ]
    return {path.relative_to(ROOT).as_posix() for path in found}


def own_files():
    """What the wheel has beside the application."""
    folder = ROOT / ".package"
    paths = (*folder.glob("tablero/*.py"), folder / "tablero/py.typed")
    return {path.relative_to(folder).as_posix() for path in paths}


def test_the_wheel_is_complete(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name for name in names if not name.startswith(APPLICATION)} == own_files()
    inside = {name.removeprefix(APPLICATION) for name in names if name.startswith(APPLICATION)}
    assert inside == files("console") | files("storage") | {"__init__.py"}
    assert {
        f"console/{name}" for name in ("docs/README.md", "templates/base.html", "static/console/icon.svg")
    } < inside


def test_what_is_installed_is_served(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    application = tmp_path / APPLICATION
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(application),
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "TABLERO_DATA": str(tmp_path / "data"),
    }
    command = [sys.executable, "-P", "-c", SERVE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(application / name / "__init__.py") for name in ("console", "storage")]


def test_the_command_of_what_is_installed_takes_no_name_of_others(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    (tmp_path / "console.py").write_text("raise AssertionError('the console of another project')")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-P", "-m", "tablero", "requests", "--help"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--follow" in done.stdout

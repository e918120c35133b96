"""The wheel holds what a checkout holds, and serves it."""

import os
import re
import subprocess
import sys
import zipfile

import pytest

from tests.live_server import ROOT
from tests.wheels import build_wheel

pytestmark = pytest.mark.slow
APPLICATION = "tablero_server/application/"  # only in the processes of Tablero on the path of modules
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
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def files(folder):
    """Paths of a folder's files, from the top of the checkout."""
    paths = (ROOT / folder).rglob("*")
    return {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if path.is_file() and "__pycache__" not in path.parts and "secrets" not in path.parts
    }


def test_the_wheel_is_complete(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    inside = {name.removeprefix(APPLICATION) for name in names if name.startswith(APPLICATION)}
    assert inside == set().union(*map(files, ("console", "docs", "static", "storage", "templates")))
    assert {name for name in names if not name.startswith(APPLICATION)} == files("tablero_server")
    assert {"docs/README.md", "templates/base.html", "static/console/icon.svg"} < inside


def test_the_wheel_has_the_name_that_documents_install(wheel):
    [metadata] = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA"))
    assert "\nName: tablero-server\n" in zipfile.ZipFile(wheel).read(metadata).decode()
    # another project has the name without -server
    command = re.compile(r"pip3? install (?:-\S+ )*[\"']?tablero(?![\w-])")
    sources = (ROOT / folder for folder in ("docs", "storage", "console", "templates", "tablero_server"))
    texts = [ROOT / "README.md", *(path for folder in sources for path in folder.rglob("*"))]
    readable = [path for path in texts if path.suffix in (".md", ".py", ".html", ".po", ".yml", ".yaml")]
    assert [str(path) for path in readable if command.search(path.read_text())] == []


@pytest.mark.long
def test_the_installed_package_serves(wheel, tmp_path):
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


@pytest.mark.long
def test_the_command_of_what_is_installed_takes_no_name_of_others(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    (tmp_path / "console.py").write_text("raise AssertionError('the console of another project')")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-P", "-m", "tablero_server", "requests", "--help"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--follow" in done.stdout

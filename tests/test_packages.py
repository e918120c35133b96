"""What is installed is all there is."""

import tomllib

from tests.live_server import ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def test_every_package_is_installed():
    found = {
        path.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for package in ("console", "storage")
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert set(SETTINGS["packages"]) == found | set(SETTINGS["package-dir"]) | {"console.locale"}


def test_folders_of_the_console_are_installed():
    assert SETTINGS["package-dir"] == {f"console.{name}": name for name in ("static", "templates")}
    assert all(
        SETTINGS["package-data"][f"console.{name}"] == ["**/*"] for name in ("locale", "static", "templates")
    )

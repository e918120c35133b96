"""Open-source licenses is what they published, and says under which licence."""

import tomllib
from hashlib import sha256

import pytest

from tests.live_server import ROOT

FOLDERS = [ROOT / "static" / "vendor", ROOT / "tests" / "browser" / "vendor"]
OURS = {
    "static": [
        "vendor.toml", "icons.txt", "sprite.py", "fonts.py",
        "codemirror.py", "codemirror.json", "codemirror-lock.json",
    ],
    "browser": ["vendor.toml"],
}  # fmt: skip
LICENSES = {"0BSD", "MIT", "ISC AND MIT", "OFL-1.1", "MPL-2.0"}
PACKAGES = [
    pytest.param(folder, package, id=package["name"])
    for folder in FOLDERS
    for package in tomllib.loads((folder / "vendor.toml").read_text())["package"]
]


@pytest.mark.parametrize(("folder", "package"), PACKAGES)
def test_files_are_the_published_ones(folder, package):
    result = folder / package["name"] / package["version"]
    assert package["license"] in LICENSES
    assert package["source"].endswith("@" + package["version"])
    assert "LICENSE" in package["files"]
    assert {path.name: sha256(path.read_bytes()).hexdigest() for path in result.iterdir()} == package["files"]


@pytest.mark.parametrize("folder", FOLDERS, ids=["served", "tests"])
def test_no_strays(folder):
    packages = [param.values[1] for param in PACKAGES if param.values[0] == folder]
    known = {folder / name for name in OURS[folder.parent.name]} | {
        folder / package["name"] / package["version"] / name
        for package in packages
        for name in package["files"]
    }
    assert {path for path in folder.rglob("*") if path.is_file()} == known

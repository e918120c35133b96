"""About, and help."""

import tomllib

from tests.live_server import ROOT

MANIFEST = tomllib.loads((ROOT / "static" / "vendor" / "vendor.toml").read_text())


def test_lists_all_that_others_made(visit):
    page = visit("victor").get("/ui/about/").content.decode()
    for package in MANIFEST["package"]:
        text = (ROOT / "static" / "vendor" / package["name"] / package["version"] / "LICENSE").read_text()
        for part in (package["name"], package["version"], package["license"], package["source"]):
            assert part in page
        assert text.splitlines()[0].split("<")[0].split("&")[0] in page


def test_the_components_are_for_developers_only(visit):
    assert visit("ada").get("/ui/kit/").status_code == 404


def test_help(visit):
    victor = visit("victor")
    assert b"<kbd>?</kbd>" in victor.get("/ui/help/shortcuts/").content
    assert b"252" in victor.get("/ui/help/limits/").content

"""Links lead somewhere, the navigation is complete, and the README is short."""

import re
from urllib.parse import urlsplit

import pytest
from packaging.version import Version

from tests.docs.pages import DOCS, DOCUMENTS, PAGES, anchors, links, name_of
from tests.live_server import ROOT


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document):
    for link in links(document):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", link
            continue
        target = (document.parent / parts.path).resolve() if parts.path else document
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        if parts.fragment:
            assert parts.fragment in anchors(target), link


def test_every_page_is_in_the_navigation():
    linked = [link for link in links(DOCS / "README.md") if "/" not in link]
    assert sorted(linked) == [page.name for page in PAGES if page.name != "README.md"]


def test_command_pages_name_the_database_used() -> None:
    """They say it on the page itself, or by a link."""
    command = re.compile(r"^(?:\$ )?(?:python3 manage.py|tablero) (?!serve|test)", re.MULTILINE)
    said = re.compile(r"--data|TABLERO_DATA|DATABASE_URL|getting-started.md#the-data-folder")
    texts = {name_of(page): page.read_text("utf-8") for page in PAGES}
    assert [name for name, text in texts.items() if command.search(text) and not said.search(text)] == []


def test_the_readme_is_short_and_links_to_every_page():
    readme = ROOT / "README.md"
    assert len(readme.read_text("utf-8").split()) <= 900
    assert {f"docs/{page.name}" for page in PAGES if page.name != "README.md"} <= set(links(readme))


def test_the_changelog_begins_with_the_version_of_the_project():
    """Between releases, the version is the next one with .dev0, so that an installation replaces an older one."""
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    changelog = (ROOT / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## (\d.*) - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)
    if version[1].endswith(".dev0"):
        assert "## Unreleased\n" in changelog
        assert Version(releases[0]) < Version(version[1])
    else:
        assert releases[0] == version[1]
    assert releases == sorted(releases, key=Version, reverse=True)


@pytest.mark.parametrize("name", ["architecture.md", "contributing/where-to-put-it.md"])
def test_paths_in_the_repository_exist(name):
    text = (DOCS / name).read_text("utf-8").replace("/NAME/", "/tables/")
    paths = re.findall(r"`((?:console|storage|static|templates|tests|docs)/[\w./-]*)`", text)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    "check",
    ["ruff format --check", "ruff check", "lint-imports", "mypy", "djlint --lint", "makemigrations --check"],
)
def test_pre_commit_and_ci_run_the_same_checks(check):
    assert check in (ROOT / ".pre-commit-config.yaml").read_text()
    assert check in (ROOT / ".ci" / "run").read_text()
    assert check in (ROOT / "CONTRIBUTING.md").read_text()

"""The prepared database, which is made again whenever its sources change."""

import ast

from tests.prepared import ROOT, SOURCES, key


def sources():
    return {path.relative_to(ROOT).as_posix() for pattern in SOURCES for path in ROOT.glob(pattern)}


def test_all_that_migrations_import_is_in_the_key():
    """A module that they begin to import has to be named in SOURCES, too."""
    known = sources()
    missing = []
    for path in [*ROOT.glob("storage/migrations/*.py"), *ROOT.glob("console/migrations/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in {
                "storage",
                "console",
            }:
                continue
            module = node.module.replace(".", "/")
            files = [f"{module}.py"] + [f"{module}/{alias.name}.py" for alias in node.names]
            missing += [
                f"{path.name}: {file}" for file in files if (ROOT / file).exists() and file not in known
            ]
    assert missing == []


def test_each_pattern_names_a_file():
    assert [pattern for pattern in SOURCES if not list(ROOT.glob(pattern))] == []


def test_the_key_is_stable_and_depends_on_the_postgresql(monkeypatch):
    before = key()
    assert key() == before
    monkeypatch.setenv("TEST_POSTGRESQL", "/opt/postgresql")
    assert key() != before

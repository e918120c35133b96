"""The page about table design: its programs run in both languages, and its filters have the paths that it shows."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage.design.advice import Pattern
from storage.design.findings import DesignKind
from storage.domain.filters.access_plan import AccessPath, plan_access
from storage.domain.filters.parser import parse
from tests.docs.pages import DOCS, anchors, blocks
from tests.live_server import LiveServer

PAGE = DOCS / "design.md"
TEXT = PAGE.read_text("utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
PATTERNS = [title for title, text in SECTIONS.items() if "```" in text]
PATHS = list(AccessPath)


def test_findings_and_advice_have_their_sections() -> None:
    named = {kind.value.section for kind in DesignKind} | {pattern.value for pattern in Pattern}
    assert named - anchors(PAGE) == set()


@pytest.mark.parametrize("title", PATTERNS)
def test_filters_have_the_paths_shown(title: str) -> None:
    text = SECTIONS[title]
    rows = re.findall(r"^\| (before|after) \| `(.+)` \| (.+) \|$", text, re.MULTILINE)
    assert [state for state, _, _ in rows] == ["before", "after"]
    paths = [plan_access(parse(query)).path for _, query, _ in rows]
    assert [path.replace("-", " ") for path in paths] == [path for _, _, path in rows]
    before, after = map(PATHS.index, paths)
    assert after < before or title == "Hot partitions"
    for language in ("python", "javascript"):
        _, _, program = text.partition(f"```{language}\n")
        program = program.partition("```")[0] + text.partition("```text\n")[2].partition("```")[0]
        keys = re.findall(r"'(.+?)'", rows[1][1])
        assert rows[1][1] in program or (paths[1] is AccessPath.POINT and all(it in program for it in keys))


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def connection_string(server: LiveServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the connection string of an account of the test's own."""
    name = "design" + request.node.name.removeprefix("test_the_").partition("_")[0]
    server.change_accounts("add", name, "--key1", server.key)
    yield server.connection_string.replace(server.account, name)
    server.change_accounts("remove", name, "--with-tables")


@pytest.mark.long
def test_the_python_programs(connection_string: str, tmp_path: Path) -> None:
    program = "\n".join(blocks(PAGE, "python")).replace("UseDevelopmentStorage=true", connection_string)
    assert run([sys.executable, "-c", program], tmp_path) == "".join(blocks(PAGE, "text"))


@pytest.mark.long
def test_the_javascript_programs(
    connection_string: str, tmp_path: Path, sdk_folder: Path, require: Callable[[str, str], str]
) -> None:
    (tmp_path / "node_modules").symlink_to(sdk_folder / "node_modules")
    # the shortcut allows http, which another address has to be allowed
    program = re.sub(
        r'"UseDevelopmentStorage=true", ("\w+")',
        rf'"{connection_string}", \1, {{ allowInsecureConnection: true }}',
        "\n".join(blocks(PAGE, "javascript")),
    )
    (tmp_path / "example.mjs").write_text(program)
    node = require("node", "the JavaScript SDK")
    assert run([node, "example.mjs"], tmp_path) == "".join(blocks(PAGE, "text"))

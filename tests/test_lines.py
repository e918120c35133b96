"""Lines are counted once each, in the room that has them."""

from pathlib import PurePosixPath

import pytest

from storage.core.registry import SUBJECTS
from tests import lines, rooms
from tests.live_server import ROOT

ROOMS = ("comments", "storage/sql", "storage/models", "console/grid")


@pytest.mark.parametrize(
    ("path", "kind", "room"),
    [
        ("storage/comments/api.py", "Python", "comments"),
        ("templates/console/comments/_thread.html", "templates", "comments"),
        ("static/console/comments/comments.css", "CSS", "comments"),
        ("static/console/grid/cells.js", "JavaScript", "console/grid"),
        ("storage/sql/pages.py", "Python", "storage/sql"),
        ("storage/models.py", "Python", "storage/models"),
        ("templates/components/tag.html", "templates", "templates"),
        ("console/settings.py", "Python", "console"),
        ("static/console/main.js", "JavaScript", "static"),
        ("tablero_server/__main__.py", "Python", "tablero_server"),
        ("tablero_server/comments.py", "Python", "tablero_server"),
        ("storage/migrations/0043_jobs.py", "", "storage"),
        ("static/vendor/htmx/htmx.js", "", "static"),
        ("storage/server/initial_schema.sql", "", "storage"),
    ],
)
def test_a_file_has_a_kind_and_a_room(path, kind, room):
    assert lines.kind_of(PurePosixPath(path)) == kind
    assert lines.room_of(PurePosixPath(path), ROOMS) == room


def test_each_line_counts_once(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for name, text in {
        "storage/comments/api.py": "a\nb\n",
        "storage/sql/pages.py": "a\n",
        "templates/console/comments/list.html": "a\nb\nc\n",
        "templates/base.html": "a\n",
        "static/console/site/on.js": "a\n",
        "static/vendor/x.js": "a\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sections = {section.title: section for section in lines.count_lines(tmp_path)}
    assert sections["subjects"].rooms["comments"] == {"Python": 2, "templates": 3}
    assert sections["engine"].total() == {"Python": 1}
    assert sections["the rest"].rooms == {"templates": {"templates": 1}}
    assert sum(section.total().total() for section in sections.values()) == 8
    table = lines.write_table(sections.values())
    assert table.splitlines()[-1].split() == ["all", "3", "4", "1", "8"]


def test_the_engine_and_the_subjects_are_layers():
    layers = {name for layer in rooms.layers("storage") for name in layer}
    assert {*lines.ENGINE, "core", *SUBJECTS} <= layers

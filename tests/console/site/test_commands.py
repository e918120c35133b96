"""One list of commands: every key has one meaning where it works, and every command is bound in a script."""

import re
from collections import Counter

import pytest

from console.site.commands import Command, Where, commands, list_commands
from storage.core import registry
from storage.core.subject import Place
from tests.live_server import ROOT

SCRIPTS = ROOT / "static" / "console"
NAME = re.compile(r'"([a-z]+\.[a-z-]+)":')  # a property in the argument of bind


def bound():
    return {name for path in SCRIPTS.rglob("*.js") for name in NAME.findall(path.read_text())}


def test_scripts_bind_every_command_and_no_other():
    listed = {it.name for it in commands() if not it.is_native}
    unbound, unlisted = sorted(listed - bound()), sorted(bound() - listed)
    assert not unbound, f"bind {unbound} in a script of static/console: see site/commands.js"
    assert not unlisted, f"list {unlisted} in console/site/commands.py, or as Key in a subject.py"


@pytest.mark.parametrize("where", Where)
def test_a_key_means_one_thing_where_it_works(where):
    keys = Counter(key for it in commands() if it.where is where for key in it.bound_keys.split())
    assert [key for key, number in keys.items() if number > 1] == []


def test_names_are_distinct():
    names = [it.name for it in commands()]
    assert sorted(set(names)) == sorted(names)


def test_a_letter_opens_one_page_of_a_sidebar():
    for sidebar in (Place.ACCOUNT, Place.SERVER):
        letters = [page.letter for page in registry.pages(sidebar) if page.letter]
        assert sorted(set(letters)) == sorted(letters)


@pytest.mark.parametrize(
    ("keys", "caps"),
    [
        ("Mod+Home Mod+End", ["Ctrl", "Home", "End"]),
        ("Enter F2", ["Enter", "F2"]),
        ("Tab Shift+Tab", ["Tab", "Shift", "Tab"]),
        ("Shift+ArrowLeft Shift+ArrowUp", ["Shift", "←", "↑"]),
        ("Alt+Shift+ArrowUp", ["Alt", "Shift", "↑"]),
        ("?", ["?"]),
    ],
)
def test_the_sheet_shows_what_is_held_once(keys, caps):
    assert Command("x.y", keys, "", Where.GRID).caps == caps


def test_the_sheet_has_every_command(visit):
    page = visit("victor").get("/ui/help/shortcuts/").content.decode()
    shown = re.findall(r'data-command="([^"]+)"', page)
    pages = [("T", "Tables")]
    assert {it.name for _where, commands in list_commands(pages) for it in commands} <= set(shown)
    assert 'data-keys="Enter F2 Shift+F2"' in page

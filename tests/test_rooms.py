"""The shape of rooms: each subject declares itself in its room, and what it names exists."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from django.utils.module_loading import import_string

from storage.core import registry
from storage.core.notices import Condition, NoticeKind
from storage.core.verbs import Act, Verb
from storage.jobs.kinds import JobKind
from tests import rooms
from tests.live_server import ROOT
from tests.test_borders import imported

PATH = re.compile(r"(?:console|storage)(?:\.\w+)+")


@pytest.mark.parametrize("name", registry.SUBJECTS)
def test_each_room_declares_its_subject(name):
    assert import_module(f"storage.{name}.subject").SUBJECT.name == name
    assert rooms.describe("storage", name).endswith("."), (
        f"storage/{name}/__init__.py needs a docstring: a sentence"
    )


def test_each_declaration_is_in_the_registry():
    declared = {path.parent.name for path in ROOT.glob("storage/*/subject.py")} - {"core"}
    assert declared == set(registry.SUBJECTS)


def test_the_import_contract_has_the_order_of_the_registry():
    """A room that shares its layer with others, such as transfer, is plain Python below them."""
    order = [
        layer[0] for layer in rooms.layers("storage") if len(layer) == 1 and layer[0] in registry.SUBJECTS
    ]
    shared = {name for layer in rooms.layers("storage") if len(layer) > 1 for name in layer}
    expected = [name for name in reversed(registry.SUBJECTS) if name not in shared]
    assert order == expected, "order the layers of pyproject.toml as storage/core/registry.py, from the last"


@pytest.mark.parametrize("name", registry.SUBJECTS)
def test_a_subject_stands_on_what_its_operations_import(name):
    """Views are above the operations of all subjects, and declarations import only values."""
    others = set()
    for path in product_files():
        if re.match(rf"storage/{name}/(?!(api|serializers|subject)\.py)", path):
            others |= rooms_of(imports_of(path)) - {name}
    declared = set(import_module(f"storage.{name}.subject").SUBJECT.stands_on)
    missing, needless = sorted(others - declared), sorted(declared - others)
    assert not missing, f"storage/{name}/subject.py: add {missing} to stands_on"
    assert not needless, f"storage/{name}/subject.py: remove {needless} from stands_on, which nothing imports"
    later = sorted(others - set(registry.SUBJECTS[: registry.SUBJECTS.index(name)]))
    assert not later, f"storage/core/registry.py: name {name} after {later}, which it stands on"


def rooms_of(modules):
    paths = [module.split(".") for module in modules]
    return {
        path[1]
        for path in paths
        if path[0] == "storage" and path[1:2] and path[1] in registry.SUBJECTS and path[2:3] != ["subject"]
    }


@pytest.mark.parametrize("name", registry.SUBJECTS)
def test_declared_paths_lead_somewhere(name):
    for path in sorted(set(declared_paths(import_module(f"storage.{name}.subject").SUBJECT))):
        try:
            import_module(path)
        except ModuleNotFoundError:
            declared = import_string(path)
            assert callable(declared) or isinstance(declared, JobKind), path


def test_paths_in_declarations_are_seen():
    """The test above would pass if it saw none."""
    paths = [path for subject in registry.subjects() for path in declared_paths(subject)]
    assert {"storage.comments.api", "storage.health.conditions.find_full_disk"} <= set(paths)
    assert set(registry.tidying().values()) | set(registry.daily()) <= set(paths)
    assert {
        verb.act.undo.do for verb in registry.verbs().values() if verb.act.undo and verb.act.undo.do
    } <= set(paths)


@pytest.mark.parametrize("name", registry.SUBJECTS)
def test_a_room_names_folders_that_exist(name):
    docstring = import_module(f"storage.{name}").__doc__ or ""
    paths = re.findall(r"\b(?:console|storage|static|templates)/[\w/]*(?:\.\w+)?", docstring)
    assert [path for path in paths if not (ROOT / path).exists()] == []


ROOMS_OF_SERVER = {"backups": "storage/server/(backups|archive)/"}


@pytest.mark.parametrize("name", registry.optional_names())
def test_nothing_outside_its_rooms_needs_an_optional_subject(name):
    """Commands of the command line are rooms of none, and import what they are about.

    The server makes backups itself, also before an upgrade, so that its folders of backups are rooms of that subject.
    """
    room = re.compile(rf"(storage|console)\.{name}(\..*)?")
    own = re.compile(
        rf"(storage|console|templates/console)/{name}/|storage/(management|migrations)/|"
        + ROOMS_OF_SERVER.get(name, "(?!)")
    )
    needing = [
        path
        for path in product_files()
        if not own.match(path) and (names_url(name, path) or any(map(room.fullmatch, imports_of(path))))
    ]
    assert not needing, (
        f"{name} can be left out: declare a slot or hook that it fills, instead of its name in {needing}"
    )


# the words of optional rooms that the engine once knew; replication is PostgreSQL's and Azure's word for something else
WORDS = {"cluster": r"distribut|citus", "replicas": r"replica(?!tion)"}
# modules outside these rooms that know them anyway
KNOWING = {
    "storage/core/registry.py": "it names all subjects",
    "storage/models.py": "columns keep their names, which servers of other versions read",
}


def test_words_of_optional_rooms_stay_in_them():
    """The engine asks relations for their abilities and databases for reads; rooms declare which ones exist."""
    rooms_of_words = re.compile(rf"(?:\w+/)+(?:{'|'.join(WORDS)})/|storage/migrations/")
    words = re.compile("|".join(WORDS.values()), re.IGNORECASE)
    static = (path.relative_to(ROOT).as_posix() for path in (ROOT / "static/console").rglob("*.*"))
    knowing = {
        path
        for path in (*product_files(), *static)
        if not rooms_of_words.match(path)
        and (words.search(path) or words.search((ROOT / path).read_text("utf-8", errors="replace")))
    }
    more, others = sorted(knowing - set(KNOWING)), sorted(set(KNOWING) - knowing)
    assert not more, f"ask for the capabilities of a relation or database instead: {more}"
    assert not others, f"remove {others} from KNOWING"


@cache
def product_files() -> list[str]:
    paths = (path for folder in ("storage", "console", "templates") for path in (ROOT / folder).rglob("*"))
    return [path.relative_to(ROOT).as_posix() for path in paths if path.suffix in (".py", ".html")]


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def imports_of(path: str) -> tuple[str, ...]:
    return imported(text_of(path)) if path.endswith(".py") else ()


def names_url(name: str, path: str) -> bool:
    return re.search(rf"""["']{name}:\w""", text_of(path)) is not None


def declared_paths(value: Any) -> Iterator[str]:
    """Find the dotted paths in a declaration, however deep."""
    if isinstance(value, type) and issubclass(value, (NoticeKind, Verb)):
        for member in value:
            yield from declared_paths(declaration_of(member))
    elif isinstance(value, Enum):
        return
    elif isinstance(value, str):
        if PATH.fullmatch(value):
            yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from declared_paths(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from declared_paths(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from declared_paths(item)


def declaration_of(member: NoticeKind | Verb) -> Act | Condition:
    return member.condition if isinstance(member, NoticeKind) else member.act

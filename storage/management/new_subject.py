"""Scaffolding of a new subject in a checkout: its folders, and its place in the registry and import contracts."""

import re
from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path
from typing import Final

from storage.core import registry

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_SUBJECT: Final = '''"""Declaration of the subject "{name}": see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(name="{name}"{pages})
'''
_URLS: Final = '''"""URLs of {words}."""

from django.urls import URLPattern

app_name = "{name}"
urlpatterns: list[URLPattern] = []
'''


class NotMade(Exception):
    """The subject cannot be created; the message tells why."""


def make_subject(root: Path, name: str, about: str, *, above: str, has_pages: bool) -> list[Path]:
    """Create the files of a subject above another one in the layers; return the created and changed files."""
    _check(root, name, about, above)
    words = name.replace("_", " ")
    made = {
        root / f"storage/{name}/__init__.py": f'"""{about}"""\n',
        root / f"storage/{name}/subject.py": _SUBJECT.format(
            name=name, pages=f', urls=("console.{name}.urls",)' if has_pages else ""
        ),
    }
    project = _insert_layer((root / "pyproject.toml").read_text("utf-8"), "storage", name, above)
    changed = {
        root / "storage/core/registry.py": _replace(
            (root / "storage/core/registry.py").read_text("utf-8"),
            f'    "{above}",\n',
            f'    "{above}",\n    "{name}",\n',
        ),
    }
    if has_pages:
        made[root / f"console/{name}/__init__.py"] = f'"""{about}"""\n'
        made[root / f"console/{name}/urls.py"] = _URLS.format(name=name, words=words)
        # the first page and the search may know every subject
        project = _insert_layer(project, "console", name, "help")
    changed[root / "pyproject.toml"] = project
    for path, text in (made | changed).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return [*made, *changed]


def _check(root: Path, name: str, about: str, above: str) -> None:
    if not (root / "pyproject.toml").exists():
        raise NotMade("Subjects are made in a checkout of the source.")
    if not _NAME.fullmatch(name) or iskeyword(name):
        raise NotMade(f"{name} cannot be the name of a subject: use lower case, such as bulk_edit.")
    taken = [path for path in _folders(root, name) if path.exists()]
    if taken:
        raise NotMade(f"{taken[0].relative_to(root)} exists already.")
    if above not in registry.SUBJECTS:
        raise NotMade(f"There is no subject {above}.")
    if not about.endswith(".") or '"' in about or "\\" in about or "\n" in about:
        raise NotMade("Say in one sentence, with a full stop, what the subject is about.")


def _folders(root: Path, name: str) -> Iterator[Path]:
    for folder in ("storage", "console"):
        yield root / folder / name
        yield root / folder / f"{name}.py"


def _insert_layer(project: str, package: str, name: str, above: str) -> str:
    """Return pyproject.toml with a new layer in an import contract, above another module."""
    start = project.index(f'containers = ["{package}"]')
    contract = re.compile(rf'^    "{above}",\n', re.MULTILINE).search(
        project, start, project.index("\n]\n", start)
    )
    if contract is None:
        raise NotMade(f"{above} has no layer of its own in the import contract of {package}.")
    return f'{project[: contract.start()]}    "{name}",\n{project[contract.start() :]}'


def _replace(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise NotMade(f"The list that has {old.strip()} is not as this command knows it.")
    return text.replace(old, new)

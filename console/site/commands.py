"""Keyboard commands of the console: keys, names and scope."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import groupby
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from storage.core import registry


class Where(Enum):
    """Group of the keyboard help; within a group, each key has one meaning."""

    EVERYWHERE = _("Everywhere")
    PAGES = _("Go to a page")
    GRID = _("In the grid")
    CELL = _("In a cell with a value")
    EDITOR = _("While editing a cell")
    QUERY = _("In the filter")
    DRAWER = _("Beside an open entity")
    REQUEST = _("Beside an open request")
    BULK_EDIT = _("In a bulk edit")

    @property
    def label(self) -> Promise:
        return self.value


@dataclass(frozen=True, slots=True)
class Command:
    """Command of the palette or keyboard."""

    name: str
    keys: str
    label: str | Promise
    where: Where
    icon: str = ""
    also: str = ""
    is_native: bool = False

    @property
    def bound_keys(self) -> str:
        return f"{self.keys} {self.also}".rstrip()

    @property
    def caps(self) -> Sequence[str]:
        """Return the keys for display, with a shared modifier only once."""
        return list(_caps(self.keys.split()))


_ARROWS: Final = "ArrowLeft ArrowUp ArrowDown ArrowRight"
_NAMES: Final = {
    "Mod": "Ctrl", "ArrowLeft": "←", "ArrowUp": "↑", "ArrowDown": "↓", "ArrowRight": "→", "Escape": "Esc",
    "ContextMenu": "Menu",
}  # fmt: skip


def _caps(keys: Iterable[str]) -> Iterator[str]:
    for held, group in groupby((key.rpartition("+") for key in keys), key=lambda parts: parts[0]):
        yield from (_NAMES.get(one, one) for one in held.split("+") if one)
        yield from (_NAMES.get(last, last) for _held, _plus, last in group)


def _held(keys: str, *modifiers: str) -> str:
    return " ".join(f"{held}+{key}" for held in modifiers for key in keys.split())


_COMMANDS: Final = (
    Command("help.keys", "?", _("Keyboard shortcuts"), Where.EVERYWHERE, "keyboard"),
    Command("palette.open", "Mod+K", _("Search everything, run commands"), Where.EVERYWHERE),
    Command("filter.focus", "/", _("Go to the filter"), Where.EVERYWHERE, "filter"),
    Command("grid.enter", "E", _("Go to the entities"), Where.EVERYWHERE, "table-2"),
    Command("entity.new", "Alt+N", _("Add entity"), Where.EVERYWHERE, "plus"),
    Command(
        "change.undo",
        "Mod+Z",
        _("Undo the last change while its notification is shown"),
        Where.EVERYWHERE,
        "undo-2",
    ),
    Command(
        "dialog.close", "Escape", _("Close the dialog or leave the grid"), Where.EVERYWHERE, is_native=True
    ),
    Command(
        "grid.move", _ARROWS, _("Move between cells in a grid"), Where.GRID, also=_held(_ARROWS, "Mod")
    ),
    Command(
        "grid.row-ends", "Home End", _("First and last cell of the row"), Where.GRID,
        also="Shift+Home Shift+End",
    ),
    Command(
        "grid.corners", "Mod+Home Mod+End", _("First and last cell of the grid"), Where.GRID,
        also="Mod+Shift+Home Mod+Shift+End",
    ),
    Command(
        "grid.pages", "PageUp PageDown", _("Move ten rows; at the edge, change pages"), Where.GRID,
        also=_held("PageUp PageDown", "Mod", "Shift", "Mod+Shift"),
    ),
    Command("row.open", "Alt+O", _("Open the entity"), Where.GRID, "maximize-2"),
    Command("row.duplicate", "Alt+D", _("Duplicate the entity"), Where.GRID, "copy-plus"),
    Command("row.select", "Space", _("Select or deselect the row"), Where.GRID, "check", also="Shift+Space"),
    Command(
        "cells.extend", _held(_ARROWS, "Shift"), _("Select several cells; in the first column, rows"),
        Where.GRID,
    ),
    Command(
        "page.select", "Mod+A", _("Select the page; press again for all results"), Where.GRID, "check"
    ),
    Command("rows.delete", "Delete", _("In the first column: delete the selected rows"), Where.GRID, "trash-2"),
    Command(
        "row.delete", "Shift+Delete", _("Delete the selected rows, or else the row of the cell"), Where.GRID,
        "trash-2", also="Mod+Delete",
    ),
    Command("cells.copy", "Mod+C", _("Copy the selected cells or rows"), Where.GRID, "copy"),
    Command("rows.copy-json", "Alt+J", _("Copy as JSON"), Where.GRID, "braces"),
    Command(
        "cells.paste", "Mod+V", _("Paste cells, or rows with their keys"), Where.GRID, is_native=True
    ),
    Command("value.view", "Alt+V", _("View the full value"), Where.GRID, "eye"),
    Command(
        "cell.menu", "Shift+F10 ContextMenu", _("Open the menu of the cell or column"), Where.GRID, "ellipsis",
        also="Shift+ContextMenu",
    ),
    Command(
        "cell.edit", "Enter F2", _("Edit the cell; typing replaces the value"), Where.CELL, "pencil",
        also="Shift+F2",
    ),
    Command("cell.toggle", "Space", _("Toggle a Boolean"), Where.CELL, "check"),
    Command(
        "cells.fill", "Mod+D", _("Fill the selected cells from the first row"), Where.CELL, "arrow-down",
        also="Mod+Shift+D",
    ),
    Command(
        "cells.clear", "Delete", _("Remove the values of the selected cells"), Where.CELL, "x",
        also="Backspace Shift+Backspace",
    ),
    Command(
        "editor.next", "Tab Shift+Tab", _("While editing: save and move right or left"), Where.EDITOR,
        is_native=True,
    ),
    Command(
        "editor.tools", "Alt+ArrowDown", _("While editing: go to the type and the other tools"), Where.EDITOR
    ),
    Command("editor.save", "Mod+Enter", _("Save a long value"), Where.EDITOR, also="Mod+Shift+Enter"),
    Command("query.run", "Mod+Enter", _("Run the query"), Where.QUERY, "play", also="Mod+Shift+Enter"),
    Command(
        "filter.suggest", "Mod+Space", _("In the filter: show suggestions"), Where.QUERY, is_native=True
    ),
    Command("filter.error", "F8", _("In the filter: go to the error"), Where.QUERY, is_native=True),
    Command("drawer.previous", "Alt+ArrowUp", _("Previous entity"), Where.DRAWER, "arrow-up"),
    Command("drawer.next", "Alt+ArrowDown", _("Next entity"), Where.DRAWER, "arrow-down"),
    Command("request.previous", "K Alt+ArrowUp", _("Previous request"), Where.REQUEST, "arrow-up"),
    Command("request.next", "J Alt+ArrowDown", _("Next request"), Where.REQUEST, "arrow-down"),
)  # fmt: skip


@cache
def commands() -> Sequence[Command]:
    """Return all commands, including those of subjects at their positions."""
    groups = {where: [it for it in _COMMANDS if it.where is where] for where in Where}
    for key in sorted(registry.keys(), key=lambda key: key.position):
        where = Where[key.group]
        groups[where].insert(key.position, Command(key.name, key.keys, _(key.label), where, key.icon))
    return [command for group in groups.values() for command in group]


def list_commands(pages: Iterable[tuple[str, str | Promise]]) -> Iterator[tuple[Where, Sequence[Command]]]:
    """Yield the groups of the help sheet; ``pages`` maps letters after G to page names."""
    to_pages = [
        Command(f"page.{letter.lower()}", f"G {letter}", label, Where.PAGES) for letter, label in pages
    ]
    for where in Where:
        listed = to_pages if where is Where.PAGES else [it for it in commands() if it.where is where]
        if listed:
            yield where, listed

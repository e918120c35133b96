"""Which entities a form of the grid is about: the ticked ones, or all that a query finds."""

from dataclasses import dataclass
from enum import StrEnum

from django.http import QueryDict
from django.utils import timezone

from console.grid.keys import read_key
from storage.domain.entities.entity import EntityKey
from storage.domain.filters import Dialect, Filter, parse


class Scope(StrEnum):
    ROWS = "rows"  # those that are ticked
    QUERY = "query"  # all that the filter finds
    TABLE = "table"  # all


@dataclass(frozen=True, slots=True)
class Selection:
    """``keys`` count in the scope of rows, ``filter`` in that of a query; its ``text`` is as it was typed."""

    scope: Scope
    keys: tuple[EntityKey, ...] = ()
    filter: Filter | None = None
    text: str = ""


def read(form: QueryDict) -> Selection:
    """The fields key (many), scope and f; raises the error of a filter that cannot be read."""
    scope = form.get("scope", "")
    if scope == Scope.TABLE:
        return Selection(Scope.TABLE)
    if scope == Scope.QUERY:
        text = form.get("f", "").strip()
        return Selection(Scope.QUERY, filter=parse(text, Dialect.CONSOLE, timezone.now()), text=text)
    tokens = dict.fromkeys(form.getlist("key"))
    keys = (read_key(token) for token in tokens)
    return Selection(Scope.ROWS, tuple(key for key in keys if key is not None))

"""Compares two entities."""

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from console.grid import cells, tokens
from console.grid.cells import Cell
from console.grid.state import GridState
from console.site.access import account_required, find_table
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import Entity, read_stored
from storage.domain.values.edm import EdmValue
from storage.editing import merge
from storage.models import Account
from storage.operations import entities


@dataclass(frozen=True, slots=True)
class ComparedValue:
    type: str  # empty if it is absent
    cell: Cell


@dataclass(frozen=True, slots=True)
class ComparedProperty:
    name: str
    left: ComparedValue
    right: ComparedValue
    is_same: bool


@account_required(Capability.READ)
def compare(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """Compare the entities of the two fields ``key``, property by property."""
    found = find_table(account, table)
    wanted = [tokens.decode_key(token) for token in request.GET.getlist("key")[:2]]
    stored = [entities.get(found, key) for key in wanted if key is not None]
    if len(stored) != 2 or stored[0] is None or stored[1] is None:
        raise Http404
    left, right = read_stored(stored[0]), read_stored(stored[1])
    lines = [_line(name, left, right) for name in dict.fromkeys((*left.properties, *right.properties))]
    context = {
        "table": found,
        "sides": [(entity.key, tokens.encode_key(entity.key)) for entity in (left, right)],
        "lines": lines,
        "differing": sum(not line.is_same for line in lines),
        "state": GridState(),
    }
    return render(request, "console/grid/compare.html", context)


def _line(name: str, left: Entity, right: Entity) -> ComparedProperty:
    one, other = left.properties.get(name), right.properties.get(name)
    return ComparedProperty(name, _side(one), _side(other), merge.is_same(one, other))


def _side(value: EdmValue | None) -> ComparedValue:
    return (
        ComparedValue("", cells.absent()) if value is None else ComparedValue(value.type, cells.draw(value))
    )

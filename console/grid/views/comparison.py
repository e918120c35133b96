"""Comparison of two entities."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from console.grid import cells, tokens
from console.grid.state import GridState
from console.site.access import table_required
from console.site.responses import see_other
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import Entity, read_stored
from storage.editing import merge
from storage.entities import entities
from storage.models import Table


@table_required(Capability.READ)
def compare(request: HttpRequest, table: Table) -> HttpResponse:
    """Compare the entities of the two ``key`` fields by property."""
    if request.method == "POST":
        query = [("key", token) for token in request.POST.getlist("key")[:2]]
        return see_other(f"{request.path}?{urlencode(query)}")
    keys = [tokens.decode_key(token) for token in request.GET.getlist("key")[:2]]
    stored = [entities.get(table, key) for key in keys if key is not None]
    if len(stored) != 2 or stored[0] is None or stored[1] is None:
        raise Http404
    left, right = read_stored(stored[0]), read_stored(stored[1])
    lines = [_line(name, left, right) for name in dict.fromkeys((*left.properties, *right.properties))]
    context = {
        "table": table,
        "sides": [(entity.key, tokens.encode_key(entity.key)) for entity in (left, right)],
        "lines": lines,
        "differing": sum(not line["is_same"] for line in lines),
        "state": GridState(),
    }
    return render(request, "console/grid/compare.html", context)


def _line(name: str, left: Entity, right: Entity) -> dict[str, Any]:
    values = left.properties.get(name), right.properties.get(name)
    return {
        "name": name,
        "cells": [(value.type if value else "", cells.draw_or_absent(value)) for value in values],
        "is_same": merge.is_same(*values),
    }

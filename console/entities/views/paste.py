"""Pasting of rows into a table: a preview first, then one transaction."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from console.entities import paste
from console.entities.paste import LIMIT, MODES, WHYS, Effect, Mode, PastePlan
from console.entities.saving import Refusal, back_address, save
from console.entities.typed_input import TYPES
from console.grid import cells
from console.grid.tabular import ReportView
from console.site import toasts
from console.site.access import table_required
from console.site.responses import is_script, wants_part
from console.site.typed_text import field_text, input_context
from storage.domain.access.roles import Capability
from storage.domain.refusals import Refused
from storage.domain.values.edm import Edm
from storage.models import Table
from storage.tabular import pasted as pasted_rows
from storage.tabular.pasted import PastedRows, PasteOptions, TooManyRows, TypeSource
from storage.tabular.report import ColumnUse

SHOWN = 100  # rows of a preview
PROBLEMS = 50


@require_http_methods(["GET", "POST"])
@table_required(Capability.WRITE)
def index(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the dialog for rows pasted on the grid, its preview, or apply it with ``apply``."""
    if request.method == "GET" and not is_script(request):
        return redirect("transfer:start", table.account.name, table.name)
    if request.method == "GET":
        return _show(request, table, {})
    text = field_text(request.POST.get("text", ""))
    context = input_context(table.account)
    try:
        pasted = pasted_rows.read(text, _options(request), context, LIMIT)
    except Refused as refusal:
        return _show(request, table, {"error": paste.describe_unreadable(refusal)}, status=422)
    except TooManyRows as refusal:
        return _show(request, table, {"error": paste.too_many_rows_message(refusal.count)}, status=422)
    plan = paste.plan(table, pasted, _mode(request), context)
    is_agreed = (
        request.POST.get("apply") == plan.token and not pasted.problems and not plan.counts[Effect.EXISTS]
    )
    if not is_agreed:
        return _preview(request, table, pasted, plan, has_changed="apply" in request.POST)
    return _apply(request, table, pasted, plan)


def _apply(request: HttpRequest, table: Table, pasted: PastedRows, plan: PastePlan) -> HttpResponse:
    changes = plan.changes
    done = save(request, table, changes)
    if isinstance(done, Refusal):
        if done.is_conflict:
            plan = paste.plan(table, pasted, plan.mode, input_context(table.account))
            return _preview(request, table, pasted, plan, has_changed=True)
        key = None if done.index is None else changes[done.index].key
        error = done.text if key is None else f"{key.partition_key}, {key.row_key}: {done.text}"
        return _preview(request, table, pasted, plan, error=error)
    count = len(changes)
    text = ngettext("Pasted %(shown)s entity", "Pasted %(shown)s entities", count)
    toasts.notify_success(request, toasts.count_text(text, count), undo=done.activity)
    address = back_address(request, table)
    if not wants_part(request):
        return HttpResponseRedirect(address)
    response = HttpResponse(status=200)
    response["HX-Redirect"] = address
    return response


def _mode(request: HttpRequest) -> Mode:
    try:
        return Mode(request.POST.get("mode", ""))
    except ValueError:
        return Mode.MERGE


def _options(request: HttpRequest) -> PasteOptions:
    return PasteOptions(
        columns=request.POST.getlist("column"),
        chosen=_types(request, "as:"),
        known=_types(request, "known:"),
    )


def _types(request: HttpRequest, prefix: str) -> Mapping[str, Edm]:
    names = {type_.value: type_ for type_ in Edm}
    return {
        name.removeprefix(prefix): names[value]
        for name, value in request.POST.items()
        if name.startswith(prefix) and value in names
    }


def _preview(
    request: HttpRequest,
    table: Table,
    pasted: PastedRows,
    plan: PastePlan,
    *,
    has_changed: bool = False,
    error: str = "",
) -> HttpResponse:
    names = [column.name for column in pasted.columns]
    problems = [
        {
            "line": problem.row.line,
            "column": problem.column,
            "why": paste.describe_problem(problem),
            "text": problem.text,
        }
        for problem in pasted.problems[:PROBLEMS]
    ]
    context = {
        "pasted": pasted,
        "plan": plan,
        "counts": plan.counts,
        "problems": problems,
        "more_problems": len(pasted.problems) - len(problems),
        "columns": [(column, WHYS[column.why]) for column in pasted.columns],
        # the columns of types are shown beside their properties
        "uses": [it for it in ReportView(pasted.report).uses if it[1][0].use is not ColumnUse.TYPES],
        "lines": [_line(planned, names) for planned in plan.rows[:SHOWN]],
        "more_lines": len(plan.rows) - SHOWN,
        "has_changed": has_changed and not pasted.problems and not plan.counts[Effect.EXISTS],
        "unlike": TypeSource.DIFFERENT,
        "error": error,
    }
    is_refused = bool(problems or plan.counts[Effect.EXISTS] or error)
    return _show(request, table, context, status=422 if is_refused or not plan.changes else 200)


def _line(planned: paste.PlannedRow, names: list[str]) -> dict[str, Any]:
    entity = planned.row.entity
    drawn = [
        (cells.draw_or_absent(entity.properties.get(name)).markup, name in planned.changed) for name in names
    ]
    return {"number": planned.row.line, "key": entity.key, "effect": planned.effect, "cells": drawn}


def _show(request: HttpRequest, table: Table, context: dict[str, Any], status: int = 200) -> HttpResponse:
    chosen = _types(request, "as:")
    context |= {
        "table": table,
        "text": field_text(request.POST.get("text", "")),
        "mode": _mode(request),
        "modes": MODES.items(),
        "types": TYPES,
        "chosen": chosen,
        "given": request.POST.getlist("column"),
        "known": [(name, type_.value) for name, type_ in _types(request, "known:").items()],
        "limit": LIMIT,
    }
    return render(request, "console/entities/paste/_rows.html", context, status=status)

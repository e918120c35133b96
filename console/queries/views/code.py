"""Query of a grid as code in a client language."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from console import snippets
from console.grid.state import GridState, read_state
from console.people import reauthentication
from console.queries.reading import comparisons_beyond_azure
from console.site.access import RoleNeeded, actor_of, role_of, table_required
from console.site.refusals import describe_refusal
from console.snippets import Language, Query, Target
from console.snippets.connections import snippet_target
from storage.access import sas as sas_operations
from storage.access.sas import SasDescription
from storage.domain import sas
from storage.domain.access.roles import Capability, may
from storage.domain.errors import StorageError
from storage.domain.filters.access_plan import plan_access
from storage.domain.filters.ast import all_of, conjuncts, is_console_only
from storage.domain.filters.writer import write
from storage.domain.sas import TableSas
from storage.domain.sas.tokens import WRITTEN_VERSION
from storage.models import Table

TOKEN_LIFETIME: Final = timedelta(hours=1)


@require_http_methods(["GET", "HEAD", "POST"])
@table_required(Capability.READ)
@never_cache
def show(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the code with a credential placeholder, or on POST with a new SAS token."""
    state = read_state(request.GET, table)
    language = snippets.LANGUAGES.get(request.GET.get("lang", ""), snippets.LANGUAGES["python"])
    target = snippet_target(request, table)
    if request.method == "POST":
        if not may(role_of(request), Capability.MANAGE_ACCESS):
            raise RoleNeeded(Capability.MANAGE_ACCESS, table.account)
        if not reauthentication.is_recent(request):
            return reauthentication.ask(request, _address(table, state, language))
        return _show(request, table, state, language, replace(target, token=_issue(request, table)))
    return _show(request, table, state, language, target)


@sensitive_variables("issued")
def _issue(request: HttpRequest, table: Table) -> str:
    """Issue a SAS token to read this table for an hour."""
    expiry = (timezone.now() + TOKEN_LIFETIME).strftime("%Y-%m-%dT%H:%M:%SZ")
    token = TableSas(version=WRITTEN_VERSION, table=table.name, permissions="r", expiry=expiry)
    description = SasDescription(_("Query code"))
    issued = sas_operations.issue(table.account, token, 1, description, by=actor_of(request))
    return sas.write(issued.token)


def _show(
    request: HttpRequest, table: Table, state: GridState, language: Language, target: Target
) -> HttpResponse:
    context: dict[str, Any] = {
        "table": table,
        "state": state,
        "language": language,
        "languages": [
            (choice.name, _address(table, state, choice), choice is language)
            for choice in snippets.LANGUAGES.values()
        ],
        "here": _address(table, state, language),
        "has_token": bool(target.token),
    }
    try:
        query, left_out = _portable_query(state)
        context |= {"code": language.write_query(target, query), "left_out": left_out}
        context["many_comparisons"] = comparisons_beyond_azure(query.filter, table.account)
    except StorageError as error:
        context["error"] = describe_refusal(error)
    return render(
        request, "console/queries/code/show.html", context, status=422 if "error" in context else 200
    )


def _portable_query(state: GridState) -> tuple[Query, list[str]]:
    """Split the query into the part that every service supports and console-only conditions."""
    query = state.wanted
    parts = conjuncts(query.filter) if query.filter is not None else []
    plain = [part for part in parts if not is_console_only(part)]
    left_out = [write(part) for part in parts if is_console_only(part)]
    root = query.filter
    if left_out:
        root = all_of(plain) if plain else None
    keys = plan_access(root).point_keys
    return Query(root, query.select or (), state.size, keys), left_out


def _address(table: Table, state: GridState, language: Language) -> str:
    query = [*state.at_start().address_fields, ("lang", language.slug)]
    return reverse("queries:code", args=(table.account.name, table.name), query=query)

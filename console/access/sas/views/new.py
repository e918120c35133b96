"""Creation of SAS tokens: a form with preview, and the token, shown once."""

from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from console.access.sas.forms import SasForm
from console.access.sas.key_range import (
    Fit,
    KeyRange,
    cover_filter,
    cover_rows,
)
from console.access.sas.labels import PERMISSIONS, RESOURCE_TYPES
from console.access.sas.registry import combine_terms, describe_token
from console.access.sas.sentences import ParameterView, describe_summary, view_parameters
from console.grid import tokens
from console.grid.tokens import Scope
from console.people import reauthentication
from console.site.access import account_required, actor_of, table_required
from console.site.refusals import describe_refusal
from console.site.toasts import notify_error
from console.snippets.connections import endpoint
from storage.access import sas as sas_operations
from storage.access.sas import IssuedSas, Refusal, SasRefused
from storage.accounts.quotas import QuotaReached
from storage.domain import sas
from storage.domain.access.grants import Operation
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.filters.parser import parse
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.explain import KeyLimits, explain, summarize
from storage.domain.sas.known import KnownToken
from storage.domain.values import dialects
from storage.models import Account, Table
from storage.tables import tables

PAGE: Final = "console/access/sas/new.html"
_MOST_NAMES: Final = 500  # suggested names of tables


@require_http_methods(["GET", "HEAD", "POST"])
@account_required(Capability.MANAGE_ACCESS)
@never_cache
def new(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the form, or create the token. A filter in the URL becomes the key range."""
    if request.method == "POST" and request.POST.get("do") != "preview":
        return _issue(request, account)
    if "f" in request.GET:
        return _redirect_to_form(
            account, request.GET.get("table", ""), _cover_filter_text(request.GET["f"]), Scope.QUERY
        )
    form = _bind_form(request, account, request.POST if request.method == "POST" else request.GET)
    form.is_valid()
    form.fields["label"].widget.attrs["autofocus"] = True
    return render(request, PAGE, _context(request, account, form))


@require_POST
@account_required(Capability.MANAGE_ACCESS)
@never_cache
def preview(request: HttpRequest, account: Account) -> HttpResponse:
    """Preview the token; with ``part=form``, also re-render the form, whose choices have changed."""
    form = _bind_form(request, account, request.POST)
    form.is_valid()
    part = (
        "console/access/sas/_generator.html"
        if request.GET.get("part") == "form"
        else "console/access/sas/_preview.html"
    )
    response = render(request, part, _context(request, account, form))
    response["HX-Replace-Url"] = f"{reverse('sas:new', args=(account.name,))}?{form.query_string()}"
    return response


@require_POST
@table_required(Capability.MANAGE_ACCESS)
def from_selection(request: HttpRequest, table: Table) -> HttpResponse:
    """Redirect to the form with a key range from selected rows or the grid's filter."""
    try:
        chosen = tokens.read_selection(request.POST)
    except StorageError as error:
        notify_error(request, describe_refusal(error))
        return redirect("entities:index", table.account.name, table.name)
    if chosen.scope is Scope.ROWS:
        return _redirect_to_form(table.account, table.name, cover_rows(chosen.keys), Scope.ROWS)
    key_range = None if chosen.filter is None else cover_filter(chosen.filter)
    return _redirect_to_form(table.account, table.name, key_range, Scope.QUERY)


def _cover_filter_text(text: str) -> KeyRange | None:
    try:
        root = parse(text, dialects.CONSOLE, timezone.now())
    except StorageError:
        return KeyRange(KeyLimits(), Fit.ALL)
    return None if root is None else cover_filter(root)


def _redirect_to_form(account: Account, table: str, key_range: KeyRange | None, scope: Scope) -> HttpResponse:
    """Redirect to the form; ``key_range`` is None without a selection or filter."""
    keys = key_range.keys if key_range else KeyLimits()
    named = {
        "table": table,
        "spk": keys.start_partition,
        "srk": keys.start_row,
        "epk": keys.end_partition,
        "erk": keys.end_row,
        "of": f"{scope}-{key_range.fit}" if key_range else "",
    }
    query = {name: value for name, value in named.items() if value}
    return redirect(reverse("sas:new", args=(account.name,), query=query))


def _bind_form(request: HttpRequest, account: Account, data: QueryDict) -> SasForm:
    # the times of a token have no fraction
    now = timezone.now().replace(microsecond=0)
    return SasForm(data, account=account, now=now, is_secure=request.is_secure())


@sensitive_variables("issued")
def _issue(request: HttpRequest, account: Account) -> HttpResponse:
    form = _bind_form(request, account, request.POST)
    if not form.is_valid():
        return render(request, PAGE, _context(request, account, form, is_sent=True), status=422)
    if not reauthentication.is_recent(request):
        back = f"{reverse('sas:new', args=(account.name,))}?{form.query_string()}"
        return reauthentication.ask(request, back)
    try:
        issued = sas_operations.issue(
            account, form.token(), form.key, form.description(), by=actor_of(request)
        )
    except (SasRefused, QuotaReached) as refused:
        form.add_error(None, _explain_refusal(refused))
        return render(request, PAGE, _context(request, account, form, is_sent=True), status=422)
    return render(request, "console/access/sas/issued.html", _issued_context(request, account, form, issued))


def _explain_refusal(refused: SasRefused | QuotaReached) -> str:
    if isinstance(refused, QuotaReached):
        return describe_refusal(refused)
    match refused.reason:
        case Refusal.NO_TABLE:
            return _("No table has this name.")
        case Refusal.NO_POLICY:
            return _("The table has no policy with this Id.")
    return refused.detail


# the form


def _context(
    request: HttpRequest, account: Account, form: SasForm, *, is_sent: bool = False
) -> dict[str, Any]:
    token = form.token()
    missing = _missing(form)
    if not is_sent:
        form.errors.clear()  # the form is still being filled in
    return {
        "form": form,
        "missing": [] if is_sent else missing,
        "sentence": _describe(token, form, account),
        "parameters": _parameters(token, form),
        "lines": sas.string_to_sign(token, account.name).split("\n"),
        "letters": [(letter, PERMISSIONS[letter]) for letter in form.letters],
        "levels": RESOURCE_TYPES.items(),
        "names": tables.names(account, top=_MOST_NAMES),
        "most_names": _MOST_NAMES,
        "is_long_lived": form.is_long_lived(),
        "of": request.GET.get("of", ""),
        "is_keyless": not account.shared_key_access,
        "quota": sas_operations.allowance(account),
    }


def _describe(token: TableSas | AccountSas, form: SasForm, account: Account) -> str:
    if isinstance(token, TableSas) and not token.table:
        return _("Grants no access yet.")
    return describe_summary(summarize(token, combine_terms(token, form.stored)), account.name)


def _missing(form: SasForm) -> list[tuple[str, str]]:
    """Return the fields that the token still lacks, except the label."""
    return [
        (str(form.fields[name].label), str(told[0]))
        for name, told in form.errors.items()
        if name in form.fields and name != "label"
    ]


def _parameters(token: TableSas | AccountSas, form: SasForm) -> list[ParameterView]:
    *parameters, signature = view_parameters(explain([*sas.to_parameters(token), ("sig", "")]), form.now)
    return [*parameters, replace(signature, value="…")]


# the token


@sensitive_variables("query", "where", "issued")
def _issued_context(
    request: HttpRequest, account: Account, form: SasForm, issued: IssuedSas
) -> dict[str, Any]:
    token, query = issued.token, sas.write(issued.token)
    where = endpoint(request, account)
    resource = f"{where}/{quote(token.table)}" if isinstance(token, TableSas) else f"{where}/"
    known = KnownToken(issued.fingerprint, token, form.description().label, is_registered=True, key=form.key)
    shown = describe_token(known, sas_operations.policies_of(account), form.now)
    return {
        "secrets": [
            ("token", _("Token"), query),
            ("url", _("URL"), f"{resource}?{query}"),
            ("connection", _("Connection string"), f"TableEndpoint={where};SharedAccessSignature={query}"),
        ],
        "row": shown,
        "sentence": shown.sentence(account.name),
        "test": f"/{account.name}{_harmless_request(account, token, shown.summary.abilities)}&{query}",
        "form": form,
        "fingerprint": issued.fingerprint,
    }


def _harmless_request(account: Account, token: TableSas | AccountSas, can: tuple[Operation, ...]) -> str:
    """Return the path of a harmless read that the token permits, if any."""
    if isinstance(token, TableSas):
        return f"/{quote(token.table)}()?$top=1"
    first = tables.names(account, top=1)
    if Operation.QUERY_TABLES not in can and Operation.QUERY_ENTITIES in can and first:
        return f"/{quote(first[0])}()?$top=1"
    if Operation.QUERY_TABLES not in can and Operation.GET_SERVICE_PROPERTIES in can:
        return "/?restype=service&comp=properties"
    return "/Tables?$top=1"

"""Making a shared access signature: its fields beside what they mean, and the token itself, which is shown once."""

from dataclasses import dataclass
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

from console.grid import tokens
from console.grid.tokens import Scope
from console.people import reauthentication
from console.sas import sas_range, sas_words
from console.sas.forms import SasForm
from console.sas.sas_range import Fit, Reach
from console.sas.sas_registry import row
from console.site.access import account_required, actor_of, find_table
from console.site.notices import notify_error
from console.snippets.connections import endpoint
from storage.domain import sas
from storage.domain.access.policies import AccessPolicy
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.filters import Dialect, parse
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.explain import Ability, KeyLimits, explain, summarize
from storage.domain.sas.known import KnownToken
from storage.models import Account, Table
from storage.operations import sas as sas_operations
from storage.operations.sas import IssuedSas, Refusal, SasRefused

PAGE: Final = "console/sas/new.html"
_OFFERED: Final = 500  # names of tables


@require_http_methods(["GET", "HEAD", "POST"])
@account_required(Capability.MANAGE_ACCESS)
@never_cache
def new(request: HttpRequest, account: Account) -> HttpResponse:
    """The form; sent, the token. A filter in the address becomes the range of keys."""
    if request.method == "POST" and request.POST.get("do") != "preview":
        return _issue(request, account)
    if "f" in request.GET:
        return _to_form(account, request.GET.get("table", ""), _of_filter(request.GET["f"]), Scope.QUERY)
    form = _form(request, account, request.POST if request.method == "POST" else request.GET)
    form.is_valid()
    return render(request, PAGE, _context(request, account, form))


@require_POST
@account_required(Capability.MANAGE_ACCESS)
@never_cache
def preview(request: HttpRequest, account: Account) -> HttpResponse:
    """What the form says so far; ``part`` form for all of it, because what can be chosen has changed."""
    form = _form(request, account, request.POST)
    form.is_valid()
    part = "console/sas/_generator.html" if request.GET.get("part") == "form" else "console/sas/_preview.html"
    response = render(request, part, _context(request, account, form))
    response["HX-Replace-Url"] = f"{reverse('sas:new', args=(account.name,))}?{form.address_of_state()}"
    return response


@require_POST
@account_required(Capability.MANAGE_ACCESS)
def of_selection(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """From the grid: the ticked rows, or all that the filter finds, become a range of keys."""
    found = find_table(account, table)
    try:
        chosen = tokens.read_selection(request.POST)
    except StorageError as error:
        notify_error(request, error.text)
        return redirect("entities:index", account.name, found.name)
    if chosen.scope is Scope.ROWS:
        return _to_form(account, found.name, sas_range.of_rows(chosen.keys), Scope.ROWS)
    reach = None if chosen.filter is None else sas_range.of_filter(chosen.filter)
    return _to_form(account, found.name, reach, Scope.QUERY)


def _of_filter(text: str) -> Reach | None:
    try:
        root = parse(text, Dialect.CONSOLE, timezone.now())
    except StorageError:
        return Reach(KeyLimits(), Fit.ALL)
    return None if root is None else sas_range.of_filter(root)


def _to_form(account: Account, table: str, reach: Reach | None, scope: Scope) -> HttpResponse:
    """``reach``: None when nothing was asked for."""
    query = QueryDict(mutable=True)
    keys = reach.keys if reach else KeyLimits()
    named = {
        "table": table,
        "spk": keys.start_partition,
        "srk": keys.start_row,
        "epk": keys.end_partition,
        "erk": keys.end_row,
        "of": f"{scope}-{reach.fit}" if reach else "",
    }
    query.update({name: value for name, value in named.items() if value})
    return redirect(f"{reverse('sas:new', args=(account.name,))}?{query.urlencode()}")


def _form(request: HttpRequest, account: Account, data: QueryDict) -> SasForm:
    # to the second, as a token says it
    now = timezone.now().replace(microsecond=0)
    return SasForm(data, account=account, now=now, is_secure=request.is_secure())


@sensitive_variables("issued")
def _issue(request: HttpRequest, account: Account) -> HttpResponse:
    form = _form(request, account, request.POST)
    if not form.is_valid():
        return render(request, PAGE, _context(request, account, form, is_sent=True), status=422)
    if not reauthentication.is_recent(request):
        back = f"{reverse('sas:new', args=(account.name,))}?{form.address_of_state()}"
        return reauthentication.ask(request, back)
    try:
        issued = sas_operations.issue(
            account, form.token(), form.key, form.description(), by=actor_of(request)
        )
    except SasRefused as refused:
        form.add_error(None, _refusal(refused))
        return render(request, PAGE, _context(request, account, form, is_sent=True), status=422)
    return render(request, "console/sas/issued.html", _shown_once(request, account, form, issued))


def _refusal(refused: SasRefused) -> str:
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
    agreed = _agreed(token, form.stored)
    missing = _missing(form)
    if not is_sent:
        form.errors.clear()  # nobody has said yet that it is finished
    return {
        "form": form,
        "missing": [] if is_sent else missing,
        "sentence": _sentence(token, agreed, account),
        "parameters": _parameters(token, form),
        "lines": sas.string_to_sign(token, account.name).split("\n"),
        "letters": [(letter, sas_words.PERMISSIONS[letter]) for letter in form.letters],
        "levels": sas_words.RESOURCE_TYPES.items(),
        "names": _names(account),
        "is_long_lived": form.is_long_lived(),
        "of": request.GET.get("of", ""),
        "is_keyless": not account.shared_key_access,
    }


def _sentence(token: TableSas | AccountSas, agreed: AccessPolicy, account: Account) -> str:
    if isinstance(token, TableSas) and not token.table:
        return _("Grants no access yet.")
    return sas_words.sentence(summarize(token, agreed), account.name)


def _agreed(token: TableSas | AccountSas, stored: AccessPolicy | None) -> AccessPolicy:
    policy = stored or AccessPolicy()
    return AccessPolicy(
        token.start or policy.start, token.expiry or policy.expiry, token.permissions or policy.permission
    )


def _missing(form: SasForm) -> list[tuple[str, str]]:
    """What is not right yet, but for what has only to be written for people."""
    return [
        (str(form.fields[name].label), str(told[0]))
        for name, told in form.errors.items()
        if name in form.fields and name != "label"
    ]


def _parameters(token: TableSas | AccountSas, form: SasForm) -> list[dict[str, Any]]:
    named = [
        {
            "name": it.name,
            "value": it.value,
            "label": sas_words.MEANINGS[it.meaning],
            "text": sas_words.explained(it, form.now),
        }
        for it in explain([*sas.to_parameters(token), ("sig", "")])
    ]
    named[-1]["value"] = "…"
    return named


def _names(account: Account) -> list[str]:
    own = Table.objects.own().filter(account=account).order_by("folded_name")
    return list(own.values_list("name", flat=True)[:_OFFERED])


# the token


@dataclass(frozen=True, slots=True)
class Secret:
    """A way to hand the token on."""

    id: str
    label: str
    text: str


@sensitive_variables("query", "where", "issued")
def _shown_once(request: HttpRequest, account: Account, form: SasForm, issued: IssuedSas) -> dict[str, Any]:
    token, query = issued.token, sas.write(issued.token)
    where = endpoint(request, account)
    resource = f"{where}/{quote(token.table)}" if isinstance(token, TableSas) else f"{where}/"
    known = KnownToken(issued.fingerprint, token, form.description().label, is_registered=True, key=form.key)
    shown = row(known, sas_operations.policies_of(account), form.now)
    return {
        "secrets": [
            Secret("token", _("Token"), query),
            Secret("url", _("URL"), f"{resource}?{query}"),
            Secret(
                "connection", _("Connection string"), f"TableEndpoint={where};SharedAccessSignature={query}"
            ),
        ],
        "row": shown,
        "sentence": shown.sentence(account.name),
        "test": f"/{account.name}{_harmless(account, token, shown.summary.abilities)}&{query}",
        "form": form,
        "fingerprint": issued.fingerprint,
    }


def _harmless(account: Account, token: TableSas | AccountSas, can: tuple[Ability, ...]) -> str:
    """A request that changes nothing, and that the token should be good for if for any."""
    if isinstance(token, TableSas):
        return f"/{quote(token.table)}()?$top=1"
    table = Table.objects.own().filter(account=account).order_by("folded_name").first()
    if Ability.LIST_TABLES not in can and Ability.QUERY in can and table is not None:
        return f"/{quote(table.name)}()?$top=1"
    if Ability.LIST_TABLES not in can and Ability.READ_SERVICE in can:
        return "/?restype=service&comp=properties"
    return "/Tables?$top=1"

"""Show, add, change and delete sets of rules."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from console.rehearsal.forms import SetForm, write_rules
from console.rehearsal.presentation import CONDITIONS, SetView, list_effects
from console.site.access import account_required, actor_of, role_of
from console.site.refusals import describe_refusal, notify_refusals
from console.site.toasts import notify_success
from storage.domain.access.roles import Capability, may
from storage.domain.refusals import Refused
from storage.models import Account
from storage.rehearsal import rehearsals
from storage.rehearsal.sets import READY, RuleSet
from storage.rehearsal.subject import RehearsalReason


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@account_required(Capability.MANAGE_TABLES)
def new(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the form of a new set, with the rules of another; or add it."""
    if request.method == "POST":
        return _save(request, account, None)
    model = _find(account, request.GET.get("from", "throttled"))
    name = f"my-{model.name}"[:64]
    form = SetForm(initial={"name": name, "description": SetView(model).text, "rules": write_rules(model)})
    return _page(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@account_required(Capability.READ)
def show(request: HttpRequest, account: Account, name: str) -> HttpResponse:
    """Show the rules of a set; its form to those who may change it."""
    rule_set = _find(account, name)
    if name in READY or not may(role_of(request), Capability.MANAGE_TABLES):
        return render(request, "console/rehearsal/set.html", {"set": SetView(rule_set)})
    if request.method == "POST":
        return _save(request, account, rule_set)
    form = SetForm(initial={"name": name, "description": rule_set.text, "rules": write_rules(rule_set)})
    return _page(request, form, rule_set)


def _save(request: HttpRequest, account: Account, former: RuleSet | None) -> HttpResponse:
    form = SetForm(request.POST)
    if former is not None:
        form.fields["name"].disabled = True
        form.initial["name"] = former.name
    if form.is_valid():
        name = form.cleaned_data["name"]
        if former is None and any(it.name == name for it in rehearsals.sets(account) if it.name not in READY):
            form.add_error("name", _("There is already a set with this name."))
            return _page(request, form, former)
        try:
            rehearsals.save_set(
                account,
                name,
                form.cleaned_data["rules"],
                text=form.cleaned_data["description"],
                by=actor_of(request),
            )
        except Refused as refused:
            is_of_rules = (
                refused.refusal.reason is RehearsalReason.RULES_MALFORMED or "number" in refused.refusal.facts
            )
            form.add_error("rules" if is_of_rules else "name", describe_refusal(refused))
        else:
            notify_success(request, _("Saved the set of rules %(set)s.") % {"set": name})
            return redirect("rehearsal:index", account.name)
    return _page(request, form, former)


def _page(request: HttpRequest, form: SetForm, former: RuleSet | None) -> HttpResponse:
    if former is not None:
        form.fields["name"].disabled = True
    context = {"form": form, "former": former, "effects": list_effects(), "conditions": CONDITIONS.items()}
    status = 422 if form.is_bound else 200
    return render(request, "console/rehearsal/change_set.html", context, status=status)


@require_POST
@account_required(Capability.MANAGE_TABLES)
def delete(request: HttpRequest, account: Account, name: str) -> HttpResponse:
    with notify_refusals(request):
        done = rehearsals.delete_set(account, name, by=actor_of(request))
        notify_success(request, _("Deleted the set of rules %(set)s.") % {"set": name}, undo=done)
    return redirect("rehearsal:index", account.name)


def _find(account: Account, name: str) -> RuleSet:
    try:
        return rehearsals.find_set(account, name)
    except Refused:
        raise Http404 from None

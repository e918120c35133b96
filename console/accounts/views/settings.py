"""Creating, configuring and deleting an account."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.conf import settings as server_settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from console.accounts.forms.settings import (
    ConfirmNameForm,
    LifetimeForm,
    NewAccountForm,
    settings_form,
)
from console.people.reauthentication import is_post, recently_authenticated_if
from console.queries import saved_changes
from console.site import waiting
from console.site.access import account_required, actor_of, admin_required
from console.site.account_settings import LABELS, SECTIONS
from console.site.forms import changed_values, include_initial_values, is_untouched, report_conflicts
from console.site.refusals import describe_refusal, notify_refusals
from console.site.responses import render_part
from console.site.toasts import notify_success
from console.snippets import connections
from storage.access import sas
from storage.account_files import account_export_jobs
from storage.accounts import account_settings, accounts, removal, sealed_keys
from storage.accounts.connection_strings import connection_string
from storage.accounts.refusals import AccountError
from storage.core import registry
from storage.core.subject import Hook
from storage.domain.access.roles import Capability
from storage.domain.requests.consistency import Consistency
from storage.domain.values.kinds import AccountKind
from storage.history import retention
from storage.jobs import jobs
from storage.jobs.states import JobStatus
from storage.metrics import totals
from storage.metrics.totals import Contents
from storage.models import Account, Activity
from storage.snapshots import snapshots

_NEAR: Final = 0.8  # the part of a quota
CREATED = "account_made"  # in a session: the account whose keys may be shown once


@admin_required
def new(request: HttpRequest) -> HttpResponse:
    """Create an account; a GET with a name validates the name while it is typed."""
    is_saved = request.method == "POST"
    data = request.POST if is_saved else request.GET if "name" in request.GET else None
    form = NewAccountForm(data)
    if is_saved and form.is_valid() and _create(request, form):
        request.session[CREATED] = form.cleaned_data["name"]
        return redirect("accounts:created", form.cleaned_data["name"])
    context = {"form": form}
    if is_saved:
        return render(request, "console/accounts/new.html", context, status=422)
    return render_part(request, "console/accounts/new.html", "components/name_rules.html", context)


def _create(request: HttpRequest, form: NewAccountForm) -> bool:
    try:
        accounts.add(form.cleaned_data["name"], form.account(), by=actor_of(request))
    except AccountError as error:  # another request took the name first
        form.add_error("name", describe_refusal(error))
        return False
    return True


@account_required(Capability.OWN)
@never_cache
@require_GET
def created(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the keys of a new account once."""
    if request.session.pop(CREATED, None) != account.name:
        return redirect("accounts:keys", account.name)
    keys = [sealed_keys.encode_key(key) for key in sealed_keys.keys_of(account)]
    endpoint = connections.endpoint(request, account)
    context = {
        "keys": keys,
        "endpoint": endpoint,
        "connection_string": connection_string(account.name, endpoint, keys[0]),
    }
    return render(request, "console/accounts/created.html", context)


@account_required(Capability.OWN)
def settings(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the settings forms; a POST saves the forms that it names."""
    sent = request.POST.getlist("form")
    forms = {
        name: settings_form(name, account, request.POST if name in sent else None)
        for name in SECTIONS
        if name in sent or _has_effect(name, account)
    }
    for form in forms.values():
        include_initial_values(form)
    named = [forms[name] for name in sent if name in forms]
    if named and _save(request, account, named):
        return redirect("accounts:settings", account.name)
    allowances = {
        "snapshot_limit": snapshots.allowance(account),
        "saved_query_limit": saved_changes.allowance(account),
        "sas_limit": sas.allowance(account),
    }
    context = {
        "sections": [(name, SECTIONS[name], form) for name, form in forms.items()],
        "kept": retention.kept(account),
        "history_limit": retention.limit(account),
        "quotas": [(LABELS[name], allowance) for name, allowance in allowances.items()],
        "has_quotas": any(
            getattr(account, name) is not None or allowance.used >= _NEAR * allowance.most
            for name, allowance in allowances.items()
        ),
    }
    for section in registry.account_sections().values():
        if section.values:
            context |= import_string(section.values)()
    status = 422 if request.method == "POST" else 200
    return render(request, "console/accounts/settings.html", context, status=status)


def _has_effect(name: str, account: Account) -> bool:
    """Return whether a section changes anything on this server, or was changed for the account."""
    match name:
        case "cluster":
            return any(can_spread() for can_spread in registry.hooks(Hook.SPREADS_TABLES))
        case "consistency":
            return bool(server_settings.READ_SOURCES) or account.consistency != Consistency.STRONG
        case "strictness":
            return account.kind != AccountKind.COSMOS
    return True


def _save(request: HttpRequest, account: Account, named: list[forms.Form]) -> bool:
    """Save all changed forms as one change; untouched forms are not validated."""
    changed = [form for form in named if not is_untouched(form)]
    if not all(form.is_valid() for form in changed):
        return False
    if [form for form in changed if report_conflicts(form)]:  # in all of them
        return False
    values: dict[str, Any] = {}
    for form in changed:
        values |= {"expires_at": form.end()} if isinstance(form, LifetimeForm) else changed_values(form)
    try:
        done = _change(request, account, values)
    except AccountError as error:
        changed[0].add_error(None, describe_refusal(error))
        return False
    if done is not None:
        notify_success(
            request, _("Saved the settings of %(account)s.") % {"account": account.name}, undo=done
        )
    return True


def _change(request: HttpRequest, account: Account, values: Mapping[str, Any]) -> Activity | None:
    changed = {field: value for field, value in values.items() if getattr(account, field) != value}
    return account_settings.change(account, by=actor_of(request), **changed) if changed else None


@account_required(Capability.CONFIGURE)
@require_POST
def export(request: HttpRequest, account: Account) -> HttpResponse:
    """Start a job that exports the account, and show it."""
    job = jobs.start_requested(account_export_jobs.request(account), by=actor_of(request))
    return redirect("jobs:show", job.pk)


@account_required(Capability.OWN)
@recently_authenticated_if(is_post)
def delete(request: HttpRequest, account: Account) -> HttpResponse:
    """Delete the account permanently, after the user typed its name."""
    form = ConfirmNameForm(request.POST if request.method == "POST" else None, account=account)
    if request.method == "POST" and not account.protected and form.is_valid():
        with notify_refusals(request):
            return _remove(request, account)
    context = {
        "form": form,
        "contents": totals.contents([account.pk]).get(account.pk, Contents()),
        "policies": totals.count_policies(account.pk),
    }
    return render(request, "console/accounts/delete.html", context, status=422 if form.is_bound else 200)


def _remove(request: HttpRequest, account: Account) -> HttpResponse:
    """Delete an account immediately, or by a job if it has many tables."""
    if removal.has_many_tables(account.pk):
        job = waiting.complete(request, removal.request(account, with_tables=True))
        if job.status != JobStatus.DONE:
            return redirect("jobs:show", job.pk)
    else:
        removal.remove(account.name, with_tables=True, by=actor_of(request))
    notify_success(request, _("Deleted the account %(account)s.") % {"account": account.name})
    return redirect("home:index")

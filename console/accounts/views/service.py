"""Service properties of an account as a form or XML: CORS with a tester, logging and metrics."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from console.accounts import service_xml
from console.accounts.forms.cors import METHODS, add_rule, move_rule, remove_rule
from console.accounts.forms.service import ServiceForms
from console.site.access import account_required, actor_of, require_storage
from console.site.refusals import describe_refusal
from console.site.responses import render_page
from console.site.toasts import notify_error, notify_success
from console.site.xml_text import error_position
from storage.accounts import service_properties
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.domain.access.roles import Capability
from storage.domain.errors import CorsPreflightFailure, InvalidHeaderValue, StorageError
from storage.domain.service_properties import cors
from storage.domain.service_properties.properties import (
    CORS_RULE_LIMIT,
    CORS_SIZE_LIMIT,
    CorsRule,
    PropertiesUpdate,
    ServiceProperties,
)
from storage.domain.values.numbers import read_number
from storage.models import Account


class VersionConflict(Exception):
    """Another user saved first; ``current`` is the saved version."""

    def __init__(self, current: ServiceProperties) -> None:
        self.current = current
        super().__init__(current)


@account_required(Capability.READ)
@require_GET
def show(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the editor, as a form or as XML, and the verdict of a preflight request in the URL."""
    require_storage(account)
    properties = service_properties.for_account(account)
    version = service_xml.version_of(properties)
    if request.GET.get("view") == "xml":
        context: dict[str, Any] = {"xml": service_xml.write_xml(properties), "version": version}
    else:
        context = {"forms": ServiceForms.from_properties(properties, version)}
        if "origin" in request.GET:
            context |= _check_preflight(properties.cors, request.GET)
    return _render_editor(request, account, context)


@account_required(Capability.CONFIGURE)
@require_POST
def save(request: HttpRequest, account: Account) -> HttpResponse:
    """Handle the pressed button; only "save" stores the properties."""
    require_storage(account)
    action, _colon, target = request.POST.get("do", "save").partition(":")
    if "xml" in request.POST:
        return _submit_xml(request, account, action)
    forms = ServiceForms.from_post(request.POST)
    index = read_number(target, digits=3)
    index = -1 if index is None else index
    match action:
        case "check":
            return render(request, "console/accounts/service/_meter.html", _form_context(forms))
        case "test":
            return _test(request, account, forms)
        case "restore":
            return _render_editor(request, account, {"forms": forms.with_rules(list)})
        case "add":
            return _render_editor(
                request, account, {"forms": forms.with_rules(add_rule(target)).focus_last()}
            )
        case "remove":
            return _render_editor(request, account, {"forms": forms.with_rules(remove_rule(index))})
        case "up" | "down":
            by = -1 if action == "up" else 1
            context = {"forms": forms.with_rules(move_rule(index, by)), "action": action}
            return _render_editor(request, account, {**context, "focused": index + by + 1})
    if not forms.is_valid():
        return _render_editor(request, account, {"forms": forms}, status=422)
    properties = forms.properties(service_properties.for_account(account))
    if action == "xml":
        xml = service_xml.write_xml(properties)
        return _render_editor(request, account, {"xml": xml, "version": forms.version})
    parts = {name: getattr(properties, name) for name in PropertiesUpdate.__slots__}
    return _save(request, account, PropertiesUpdate(**parts), forms.version)


def _submit_xml(request: HttpRequest, account: Account, action: str) -> HttpResponse:
    text, version = request.POST["xml"], request.POST.get("version", "")
    if action == "restore":
        return _render_editor(request, account, {"xml": text, "version": version})
    try:
        update = service_xml.read_update(text)
        if action == "form":
            properties = update.apply(service_properties.for_account(account))
            forms = ServiceForms.from_properties(properties, version)
            return _render_editor(request, account, {"forms": forms.bound()})
        return _save(request, account, update, version, view="xml")
    except StorageError as error:
        context = {"xml": text, "version": version, "error": error, "at": error_position(error)}
        return _render_editor(request, account, context, status=422)


def _save(
    request: HttpRequest, account: Account, update: PropertiesUpdate, version: str, view: str = ""
) -> HttpResponse:
    """Save, or show both versions on a conflict."""

    def make(former: ServiceProperties) -> ServiceProperties:
        properties = update.apply(former)
        if service_xml.version_of(former) != version and properties != former:
            raise VersionConflict(former)
        return properties

    try:
        done = service_properties.replace(account, make, by=actor_of(request))
    except VersionConflict as conflict:
        return _render_conflict(request, account, update.apply(conflict.current), conflict.current)
    except StorageError as error:
        if view:
            raise
        notify_error(request, describe_refusal(error))
        return _render_editor(request, account, {"forms": ServiceForms.from_post(request.POST)}, status=422)
    text = _("Saved the service properties.") if done else _("Nothing was changed.")
    notify_success(request, text, undo=done)
    return redirect(f"{reverse('accounts:service', args=(account.name,))}{f'?view={view}' if view else ''}")


def _test(request: HttpRequest, account: Account, forms: ServiceForms) -> HttpResponse:
    """Test the rules in the form, saved or not."""
    rules = forms.cors.rules
    is_unsaved = rules != service_properties.for_account(account).cors
    verdict = _check_preflight(rules, request.POST)
    context = {"forms": forms.with_rules(list), **verdict, "is_unsaved": is_unsaved}
    if request.headers.get("HX-Request") == "true":
        return render(request, "console/accounts/service/_verdict.html", context)
    return _render_editor(request, account, context)


def _check_preflight(rules: tuple[CorsRule, ...], data: QueryDict) -> dict[str, Any]:
    """Return the verdict on the preflight request that a browser would send."""
    question = {name: data.get(name, "").strip() for name in ("origin", "method", "headers")}
    origin, method, headers = question.values()
    if not origin or not method:
        return {"question": question, "refusal": InvalidHeaderValue(cors.MISSING_CORS_HEADER)}
    verdict = cors.check_preflight(rules, origin, method, headers)
    return {
        "question": question,
        "verdict": verdict,
        "number": None if verdict.place is None else verdict.place + 1,
        "rule": None if verdict.place is None else rules[verdict.place],
        "refusal": None if verdict.is_allowed else CorsPreflightFailure(),
        # why the rules before it do not match
        "reasons": [
            {
                "number": number,
                "is_other_origin": not cors.allows_origin(rule, origin),
                "is_other_method": method not in rule.methods,
            }
            for number, rule in enumerate(rules[: verdict.place], start=1)
        ],
    }


def _render_editor(
    request: HttpRequest, account: Account, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    is_draft = request.method == "POST"
    context = {
        **context,
        **(_form_context(context["forms"]) if "forms" in context else {}),
        "is_draft": is_draft,
    }
    response = render_page(request, "console/accounts/service/show.html", context, status=status)
    if is_draft:
        address = reverse("accounts:service", args=(account.name,))
        response["HX-Replace-Url"] = f"{address}?view=xml" if "xml" in context else address
    return response


def _form_context(forms: ServiceForms) -> dict[str, Any]:
    return {
        "forms": forms,
        "methods": METHODS,
        "rule_limit": CORS_RULE_LIMIT,
        "size": forms.cors.size,
        "size_limit": CORS_SIZE_LIMIT,
        "size_low": CORS_SIZE_LIMIT * 3 // 4,
    }


def _render_conflict(
    request: HttpRequest, account: Account, mine: ServiceProperties, current: ServiceProperties
) -> HttpResponse:
    theirs, ours = service_xml.write_xml(current), service_xml.write_xml(mine)
    changes = activity.ActivityFilter(account_ids=[account.pk], verbs=[AccountVerb.PROPERTIES_SET])
    context = {
        "theirs": service_xml.compare_lines(theirs, ours),
        "ours": service_xml.compare_lines(ours, theirs),
        "xml": ours,
        "version": service_xml.version_of(current),
        "last": next(iter(activity.page(changes, top=1).activities), None),
    }
    return render_page(request, "console/accounts/service/conflict.html", context, status=409)

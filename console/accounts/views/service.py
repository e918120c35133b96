"""What an account wants of the service: CORS rules with a tester, logs and metrics, and all of it as XML."""

import hashlib
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final
from xml.etree.ElementTree import ParseError, indent, tostring

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from console.accounts.forms import service as forms
from console.accounts.forms.service import METHODS, RECIPES, Draft
from console.site.access import account_required, actor_of
from console.site.notices import notify_error, notify_success
from console.site.responses import render_part
from storage.domain.access.roles import Capability
from storage.domain.errors import CorsPreflightFailure, InvalidHeaderValue, StorageError
from storage.domain.service import cors
from storage.domain.service.activity import Verb
from storage.domain.service.service_properties import (
    CORS_RULE_LIMIT,
    CORS_SIZE_LIMIT,
    CorsRule,
    PropertiesUpdate,
    ServiceProperties,
)
from storage.domain.service.service_properties_xml import (
    FIRST_PARTIAL_VERSION,
    read_properties,
    write_properties,
)
from storage.domain.values.xml import read_xml
from storage.models import Account
from storage.operations import activity, service_properties

PAGE: Final = "console/accounts/service/show.html"
EDITOR: Final = "console/accounts/service/_editor.html"


class ChangedMeanwhile(Exception):
    def __init__(self, now: ServiceProperties) -> None:
        self.now = now
        super().__init__(now)


@account_required(Capability.READ)
@require_GET
def show(request: HttpRequest, account: Account) -> HttpResponse:
    """The editor, as a form or as XML; what is asked of the tester may stand in the address."""
    properties = service_properties.for_account(account)
    if request.GET.get("view") == "xml":
        return _answer(request, account, {"xml": write_xml(properties), "version": version_of(properties)})
    draft = forms.write_draft(properties, version_of(properties))
    context: dict[str, Any] = {"draft": draft}
    if "origin" in request.GET:
        context |= _verdict(properties.cors, _read_question(request))
    return _answer(request, account, context)


@account_required(Capability.MANAGE_ACCESS)
@require_POST
def save(request: HttpRequest, account: Account) -> HttpResponse:
    """What a button of the editor asks for; only one of them saves."""
    what, _colon, which = request.POST.get("do", "save").partition(":")
    if "xml" in request.POST:
        return _save_xml(request, account, what)
    draft = forms.read_draft(request.POST)
    match what:
        case "check":
            return render(request, "console/accounts/service/_meter.html", _of_draft(draft))
        case "test":
            return _test(request, account, draft)
        case "xml":
            return _turn_into_xml(request, account, draft)
        case "add":
            draft = forms.added(draft, *RECIPES.get(which, ()))
            return _answer(
                request, account, {"draft": draft, "focus": draft.rules[-1].id if draft.rules else ""}
            )
        case "remove":
            return _answer(request, account, {"draft": forms.removed(draft, which)})
        case "up" | "down":
            draft = forms.moved(draft, which, -1 if what == "up" else 1)
            return _answer(request, account, {"draft": draft, "moved": f"{what}-{which}"})
    told = draft.told()
    if told:
        return _answer(request, account, {"draft": draft, "told": told}, status=422)
    return _save(request, account, PropertiesUpdate(**_parts(draft.read())), draft.version)


def _parts(properties: ServiceProperties) -> dict[str, Any]:
    return {name: getattr(properties, name) for name in PropertiesUpdate.__slots__}


def _save_xml(request: HttpRequest, account: Account, what: str) -> HttpResponse:
    text, version = request.POST["xml"], request.POST.get("version", "")
    try:
        update = read_properties(text.encode(errors="surrogatepass"), FIRST_PARTIAL_VERSION)
        if what == "form":
            wanted = update.apply(service_properties.for_account(account))
            draft = forms.write_draft(wanted, version)
            return _answer(request, account, {"draft": draft, "told": draft.told()})
        return _save(request, account, update, version, view="xml")
    except StorageError as error:
        context = {"xml": text, "version": version, "error": error, "at": _position(error)}
        return _answer(request, account, context, status=422)


def _save(
    request: HttpRequest, account: Account, update: PropertiesUpdate, version: str, view: str = ""
) -> HttpResponse:
    """Unless somebody else saved since: then both are shown."""

    def make(former: ServiceProperties) -> ServiceProperties:
        wanted = update.apply(former)
        if version_of(former) != version and wanted != former:
            raise ChangedMeanwhile(former)
        return wanted

    try:
        done = service_properties.replace(account.pk, make, by=actor_of(request))
    except ChangedMeanwhile as changed:
        return _conflict(request, account, update.apply(changed.now), changed.now)
    except StorageError as error:
        if view:
            raise
        notify_error(request, error.text)
        return _answer(request, account, {"draft": forms.read_draft(request.POST)}, status=422)
    notify_success(
        request, _("Saved the service properties.") if done else _("Nothing was changed."), undo=done
    )
    return redirect(f"{reverse('accounts:service', args=(account.name,))}{f'?view={view}' if view else ''}")


def _turn_into_xml(request: HttpRequest, account: Account, draft: Draft) -> HttpResponse:
    """What is wrong in a form might not come back from XML."""
    told = draft.told()
    if told:
        return _answer(request, account, {"draft": draft, "told": told}, status=422)
    context = {"xml": write_xml(draft.read()), "version": draft.version}
    return _answer(request, account, context)


def _answer(
    request: HttpRequest, account: Account, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    draft = context.get("draft")
    context = {**context, **(_of_draft(draft) if draft is not None else {})}
    context.setdefault("told", {})
    context["is_draft"] = request.method == "POST"
    response = render_part(request, page=PAGE, part=EDITOR, context=context, status=status)
    if request.method == "POST":
        address = reverse("accounts:service", args=(account.name,))
        response["HX-Replace-Url"] = f"{address}?view=xml" if "xml" in context else address
    return response


def _of_draft(draft: Draft) -> dict[str, Any]:
    return {
        "draft": draft,
        "methods": METHODS,
        "rule_limit": CORS_RULE_LIMIT,
        "size": draft.size,
        "size_limit": CORS_SIZE_LIMIT,
        "size_low": CORS_SIZE_LIMIT * 3 // 4,
    }


# as XML


def version_of(properties: ServiceProperties) -> str:
    return hashlib.sha256(write_properties(properties, FIRST_PARTIAL_VERSION)).hexdigest()[:16]


def write_xml(properties: ServiceProperties) -> str:
    """What a client gets, with line breaks for people."""
    root = read_xml(write_properties(properties, FIRST_PARTIAL_VERSION))
    indent(root)
    return tostring(root, encoding="unicode")


def _position(error: StorageError) -> tuple[int, int] | None:
    """Line and column, from 1, where a parser got stuck."""
    if not isinstance(error.__cause__, ParseError):
        return None
    line, column = error.__cause__.position
    return line, column + 1


# when two edit at once


CONTEXT: Final = 3  # lines around a difference


@dataclass(frozen=True, slots=True)
class Line:
    """``is_gap`` stands for lines that are the same on both sides."""

    text: str = ""
    is_different: bool = False
    is_gap: bool = False


def _conflict(
    request: HttpRequest, account: Account, mine: ServiceProperties, now: ServiceProperties
) -> HttpResponse:
    theirs, ours = write_xml(now), write_xml(mine)
    wanted = activity.ActivityFilter(account_ids=[account.pk], verbs=[Verb.PROPERTIES_SET])
    context = {
        "theirs": _lines(theirs, ours),
        "ours": _lines(ours, theirs),
        "xml": ours,
        "version": version_of(now),
        "last": next(iter(activity.page(wanted, top=1).activities), None),
    }
    page, part = "console/accounts/service/conflict.html", "console/accounts/service/_conflict.html"
    return render_part(request, page=page, part=part, context=context, status=409)


def _lines(text: str, other: str) -> list[Line]:
    lines = text.splitlines()
    found = []
    for number, is_same, is_near in _compared(lines, other.splitlines()):
        if is_near:
            found.append(Line(lines[number], is_different=not is_same))
        elif not found or not found[-1].is_gap:
            found.append(Line(is_gap=True))
    return found


def _compared(lines: list[str], others: list[str]) -> list[tuple[int, bool, bool]]:
    """Of each line its number, whether the others have it, and whether a difference is near."""
    matcher = SequenceMatcher(None, lines, others, autojunk=False)
    near = {
        number
        for tag, start, end, _start, _end in matcher.get_opcodes()
        if tag != "equal"
        for number in range(start - CONTEXT, end + CONTEXT)
    }
    same = {start + offset for start, _start, size in matcher.get_matching_blocks() for offset in range(size)}
    return [(number, number in same, number in near) for number in range(len(lines))]


# the tester


@dataclass(frozen=True, slots=True)
class Question:
    """What a browser asks before it sends a request of another origin."""

    origin: str
    method: str
    headers: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a rule does not decide."""

    number: int
    is_other_origin: bool
    is_other_method: bool


def _read_question(request: HttpRequest) -> Question:
    data = request.POST if request.method == "POST" else request.GET
    return Question(*(data.get(name, "").strip() for name in ("origin", "method", "headers")))


def _test(request: HttpRequest, account: Account, draft: Draft) -> HttpResponse:
    """By the rules as they stand in the form, saved or not."""
    question = _read_question(request)
    properties = draft.read()
    is_saved = properties.cors == service_properties.for_account(account).cors
    context = {"draft": draft, **_verdict(properties.cors, question), "is_unsaved": not is_saved}
    if request.headers.get("HX-Request") == "true":
        return render(request, "console/accounts/service/_verdict.html", context)
    return _answer(request, account, context)


def _verdict(rules: tuple[CorsRule, ...], question: Question) -> dict[str, Any]:
    if not question.origin or not question.method:
        return {"question": question, "refusal": InvalidHeaderValue(cors.MISSING_CORS_HEADER)}
    verdict = cors.check_preflight(rules, question.origin, question.method, question.headers)
    return {
        "question": question,
        "verdict": verdict,
        "number": None if verdict.place is None else verdict.place + 1,
        "rule": None if verdict.place is None else rules[verdict.place],
        "refusal": None if verdict.is_allowed else CorsPreflightFailure(),
        "reasons": [
            Reason(
                place + 1,
                is_other_origin=not cors.allows_origin(rule, question.origin),
                is_other_method=question.method not in rule.methods,
            )
            for place, rule in enumerate(rules[: verdict.place])
        ],
    }

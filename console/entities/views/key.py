"""Change of an entity's key: inserts it under the new key and deletes the old one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console.entities import entity_page as pages
from console.entities import problems
from console.entities.entity_form import FieldError
from console.entities.entity_page import EntityTarget
from console.entities.saving import Refusal, attempt
from console.site.access import actor_of, table_required
from console.site.responses import render_page, see_other, wants_part
from console.site.toasts import notify_success
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import EntityAlreadyExists, UpdateConditionNotSatisfied
from storage.domain.values.etag import ANY, Precondition, read_if_match, write_etag
from storage.entities import edits, entities
from storage.models import Table


@require_http_methods(["GET", "HEAD", "POST"])
@table_required(Capability.WRITE)
def change(request: HttpRequest, table: Table) -> HttpResponse:
    target = pages.find_target(request, table)
    stored = entities.get(target.table, target.key)
    if stored is None:
        return pages.render_missing(request, target)
    if request.method == "POST":
        return _change(request, target)
    return _page(request, target, target.key, write_etag(stored.timestamp))


def _page(
    request: HttpRequest,
    target: EntityTarget,
    new_key: EntityKey,
    etag: str,
    wrong: Sequence[FieldError] = (),
) -> HttpResponse:
    context: dict[str, Any] = {
        "table": target.table,
        "entity_key": target.key,
        "wanted": new_key,
        "etag": etag,
        "problems": wrong,
        "key_errors": {problem.field: problem.text for problem in wrong},
        "address": target.address("entities:key"),
        "back": target.address(),
        "table_address": target.table_address,
        "in_drawer": wants_part(request),
    }
    return render_page(request, "console/entities/entity/key.html", context, status=422 if wrong else 200)


def _change(request: HttpRequest, target: EntityTarget) -> HttpResponse:
    new_key = EntityKey(request.POST.get("pk", ""), request.POST.get("rk", ""))
    etag = request.POST.get("etag", "")
    errors = problems.check_key_values(target.kind, new_key)
    if new_key == target.key:
        errors.append(FieldError("rk", "", _("Enter a key that differs from the current one.")))
    if errors:
        return _page(request, target, new_key, etag, errors)
    done = attempt(
        lambda: edits.change_key(target.table, target.key, new_key, _condition(etag), by=actor_of(request))
    )
    if isinstance(done, Refusal):
        if done.is_of_deleted:
            return pages.render_missing(request, target)
        return _page(request, target, new_key, etag, [_problem(done)])
    notify_success(request, _("Changed the key"), undo=done.activity)
    return see_other(replace(target, key=new_key).address())


def _condition(etag: str) -> Precondition:
    condition = read_if_match(etag)
    if condition == ANY:  # the console never moves an unknown version
        raise UpdateConditionNotSatisfied
    return condition


def _problem(refusal: Refusal) -> FieldError:
    match refusal.error:
        case EntityAlreadyExists():
            return FieldError("rk", "", _("An entity with these keys already exists."))
        case UpdateConditionNotSatisfied():
            text = _("This entity was changed since you opened it. Review it before you change its key.")
            return FieldError("", "", text)
        case error:
            return problems.describe_error(error, pages.EMPTY)

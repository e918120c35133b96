"""What people and clients did, and the way back."""

from typing import Final

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console.activity import sentences
from console.activity import undo as ways
from console.site.access import actor_of, user_of
from console.site.addresses import is_of_console
from console.site.notices import complain, say
from console.site.rendering import wants_part
from storage.domain.errors import StorageError
from storage.domain.service.activity import Verb
from storage.models import Activity
from storage.operations.undo import CannotUndo, Reason, effect

_MOST: Final = 1000  # that are undone together


@require_POST
@login_required
def undo(request: HttpRequest, numbers: str) -> HttpResponse:
    """One thing, or several that were done together: all of them or none."""
    several = _undoable(request, numbers)
    try:
        done = ways.undo(several, actor_of(request))
    except CannotUndo as cannot:
        complain(request, sentences.refusal(cannot), link=_where(cannot))
        return _undone(request, several, [])
    except OperationalError:
        complain(request, _("Not undone: a server or the database did not respond in time. Try again."))
        return _undone(request, several, [])
    except StorageError as error:
        complain(request, error.text)
        return _undone(request, several, [])
    say(request, sentences.undone(done), undo=done)
    return _undone(request, several, done)


def _undoable(request: HttpRequest, numbers: str) -> list[Activity]:
    wanted = {int(number) for number in numbers.split(",") if number.isdecimal() and len(number) < 19}
    user, roles = user_of(request), ways.roles_of(user_of(request))
    several = [done for done in Activity.objects.filter(pk__in=wanted) if ways.may_see(user, done, roles)]
    if not wanted or len(several) != len(wanted) or len(several) > _MOST:
        raise Http404
    if not all(ways.may_undo(user, done, roles) for done in several):
        raise PermissionDenied(sentences.REASONS[Reason.NOT_YOURS])
    return several


def _where(cannot: CannotUndo) -> str:
    """What was changed since, to look at."""
    if cannot.key is None or cannot.reason is Reason.GONE:
        return ""
    return sentences.entity_address(cannot.done, *cannot.key)


def _undone(request: HttpRequest, several: list[Activity], done: list[Activity]) -> HttpResponse:
    if wants_part(request):
        return HttpResponse(render_to_string("components/toasts_beside.html", {}, request))
    return redirect(_next(request, several, done))


def _next(request: HttpRequest, several: list[Activity], done: list[Activity]) -> str:
    """Where it was asked for, if that is still there."""
    first = several[0]
    address = request.POST.get("next", "")
    if not is_of_console(address):
        address = (
            reverse("activity:index", args=(first.account_name,))
            if first.account_name
            else reverse("home:index")
        )
    if any(effect(undone) is Verb.TABLE_DELETE for undone in done):
        gone = reverse("entities:index", args=(first.account_name, first.table_name))
        if address.startswith(gone):
            return reverse("tables:index", args=(first.account_name,))
    return address

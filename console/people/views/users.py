"""Administration of users."""

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.models import User
from console.people import invitations, sessions, users
from console.people.api_tokens import token_rows
from console.people.forms.people import ServerInviteForm
from console.people.invitations import Offer
from console.people.reauthentication import recently_authenticated, recently_authenticated_if
from console.people.users import LastAdmin
from console.site.access import actor_of, admin_required
from console.site.toasts import notify_error, notify_success
from storage.domain.access.roles import Role
from storage.models import Activity
from storage.people import members
from storage.rest.lookups import or_404


@require_safe
@admin_required
def index(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _offers_power(request: HttpRequest) -> bool:
    form = ServerInviteForm(request.POST)
    return form.is_valid() and (form.cleaned_data["is_admin"] or form.cleaned_data["role"] == Role.OWNER)


@require_POST
@never_cache
@admin_required
@recently_authenticated_if(_offers_power)
def invite(request: HttpRequest) -> HttpResponse:
    """Create an invitation; its link is only shown in this response."""
    form = ServerInviteForm(request.POST)
    if not form.is_valid():
        return _page(request, form=form, status=422)
    data = form.cleaned_data
    offer = Offer(data["note"], data["account"], data["role"], data["is_admin"], data["days"])
    return _page(request, link=invitations.issue_link(request, offer), offer=offer)


@require_safe
@admin_required
def show(request: HttpRequest, user: int) -> HttpResponse:
    person = get_object_or_404(User, pk=user)
    context = {
        "person": person,
        "memberships": members.memberships(person),
        "factors": users.second_factors([person]).get(person.pk, []),
        "sessions": sessions.count(person),
        "tokens": token_rows(person),
    }
    return render(request, "console/people/users/show.html", context)


@require_POST
@admin_required
@recently_authenticated
def change(request: HttpRequest, user: int) -> HttpResponse:
    """Handle the pressed button."""
    person = get_object_or_404(User, pk=user)
    action = or_404(_ACTIONS.get(request.POST.get("action", "")))
    try:
        perform, text = action
        done = perform(person, by=actor_of(request))
    except LastAdmin:
        notify_error(
            request,
            _("%(user)s is the last active admin. Make another user an admin first.") % {"user": person},
        )
    else:
        notify_success(request, str(text) % {"user": person}, undo=done)
    return redirect("people:user", person.pk)


_ACTIONS: dict[str, tuple[Callable[..., Activity | None], Promise]] = {
    "promote": (
        partial(users.set_admin, is_admin=True),
        gettext_lazy("%(user)s is now an admin of this server."),
    ),
    "demote": (partial(users.set_admin, is_admin=False), gettext_lazy("%(user)s is no longer an admin.")),
    "activate": (
        partial(users.set_active, is_active=True),
        gettext_lazy("Enabled %(user)s. They can sign in again."),
    ),
    "deactivate": (
        partial(users.set_active, is_active=False),
        gettext_lazy("Disabled %(user)s. They are signed out and cannot sign in."),
    ),
    "sign-out": (users.sign_out_everywhere, gettext_lazy("Signed %(user)s out everywhere.")),
    "reset": (
        users.reset_factors,
        gettext_lazy(
            "Removed the second factors of %(user)s. They sign in with the password alone until they set up a new one."
        ),
    ),
}


def _page(
    request: HttpRequest,
    *,
    form: ServerInviteForm | None = None,
    link: str = "",
    offer: Offer | None = None,
    status: int = 200,
) -> HttpResponse:
    people = list(users.all_users())
    context = {
        "people": people,
        "factors": users.second_factors(people),
        "form": form or ServerInviteForm(),
        "pending": invitations.pending(),
        "link": link,
        "offer": offer,
    }
    return render(request, "console/people/users/index.html", context, status=status)

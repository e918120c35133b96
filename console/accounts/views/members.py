"""The members of an account, and invitations to it."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.models import Invitation, User
from console.people import invitations
from console.people.forms.people import InviteForm, MemberForm, RoleForm
from console.people.invitations import Offer
from console.people.reauthentication import recently_authenticated_if
from console.site import roles
from console.site.access import account_required, actor_of, user_of
from console.site.toasts import notify_error, notify_success
from storage.domain.access.roles import Capability, Role, may
from storage.models import Account
from storage.people import members as members_of
from storage.people.members import LastOwner, role_in


@require_safe
@account_required(Capability.READ)
def index(request: HttpRequest, account: Account) -> HttpResponse:
    return _page(request, account)


def _makes_owner(request: HttpRequest) -> bool:
    form = RoleForm(request.POST)
    return form.is_valid() and form.cleaned_data["role"] == Role.OWNER


@require_POST
@account_required(Capability.GRANT)
@recently_authenticated_if(_makes_owner)
def add(request: HttpRequest, account: Account) -> HttpResponse:
    """Add an existing user as a member."""
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _page(request, account, member_form=form, status=422)
    _set(request, account, form.cleaned_data["username"], form.cleaned_data["role"])
    return redirect("accounts:members", account.name)


@require_POST
@account_required(Capability.GRANT)
@recently_authenticated_if(_makes_owner)
def change(request: HttpRequest, account: Account, member: int) -> HttpResponse:
    form = RoleForm(request.POST)
    if not form.is_valid():
        raise Http404
    _set(request, account, _member(account, member), form.cleaned_data["role"])
    return redirect("accounts:members", account.name)


@require_POST
@account_required(Capability.GRANT)
def remove(request: HttpRequest, account: Account, member: int) -> HttpResponse:
    user = _member(account, member)
    try:
        done = members_of.remove(account, user, by=actor_of(request))
    except LastOwner:
        notify_error(request, _last_owner(user))
    else:
        text = _("Removed %(user)s from %(account)s.")
        notify_success(request, text % {"user": user, "account": account.name}, undo=done)
    return redirect("accounts:members", account.name)


@require_POST
@never_cache
@account_required(Capability.GRANT)
@recently_authenticated_if(_makes_owner)
def invite(request: HttpRequest, account: Account) -> HttpResponse:
    """Create an invitation; its link is only shown in this response."""
    form = InviteForm(request.POST)
    if not form.is_valid():
        return _page(request, account, invite_form=form, status=422)
    data = form.cleaned_data
    offer = Offer(data["note"], account, data["role"], is_admin=False, days=data["days"])
    return _page(request, account, link=invitations.issue_link(request, offer), offer=offer)


@require_POST
@login_required
def withdraw(request: HttpRequest, invitation: int) -> HttpResponse:
    """Withdraw an invitation, as an owner of its account or an admin."""
    pending = get_object_or_404(Invitation.objects.select_related("account"), pk=invitation, used_at=None)
    if not _may_withdraw(user_of(request), pending):
        raise Http404
    invitations.withdraw(pending, by=actor_of(request))
    notify_success(request, _("Withdrew the invitation. Its link no longer works."))
    if pending.account is not None and request.POST.get("from") == "members":
        return redirect("accounts:members", pending.account.name)
    return redirect("people:users")


def _may_withdraw(user: User, invitation: Invitation) -> bool:
    if user.is_admin or invitation.account is None:
        return user.is_admin
    role = role_in(user, invitation.account)
    return role is not None and may(role, Capability.GRANT)


def _set(request: HttpRequest, account: Account, user: User, role: Role) -> None:
    try:
        done = members_of.set_role(account, user, role, by=actor_of(request))
    except LastOwner:
        notify_error(request, _last_owner(user))
        return
    values = {"user": user, "account": account.name, "role": roles.label(role)}
    notify_success(request, _("%(user)s is now %(role)s of %(account)s.") % values, undo=done)


def _last_owner(user: User) -> str:
    return _("%(user)s is the last owner. Make another member an owner first.") % {"user": user}


def _member(account: Account, pk: int) -> User:
    return get_object_or_404(User, pk=pk, memberships__account=account)


def _page(
    request: HttpRequest,
    account: Account,
    *,
    member_form: MemberForm | None = None,
    invite_form: InviteForm | None = None,
    link: str = "",
    offer: Offer | None = None,
    status: int = 200,
) -> HttpResponse:
    shown = members_of.members(account)
    context = {
        "members": shown,
        "roles": roles.CHOICES,
        "admins": User.objects.filter(is_admin=True, is_active=True).order_by("username"),
        "member_form": member_form or MemberForm(initial={"role": Role.EDITOR}),
        "invite_form": invite_form or InviteForm(auto_id="invite_%s"),
        "pending": invitations.pending(account),
        "link": link,
        "offer": offer,
    }
    return render(request, "console/accounts/members/index.html", context, status=status)

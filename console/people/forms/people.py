"""Forms for invitations and members."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from console.models import User
from console.people.forms.setup import SetupForm
from console.site import roles
from console.site.forms import VERBATIM
from storage.accounts import accounts
from storage.domain.access.roles import Role

DAYS = [(1, _("1 day")), (7, _("7 days")), (30, _("30 days"))]


class RoleForm(forms.Form):
    """The role of a member."""

    role = forms.TypedChoiceField(label=_("Role"), choices=roles.CHOICES, coerce=lambda text: Role(int(text)))


class MemberForm(RoleForm):
    """Form that adds an existing user as a member."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        widget=forms.TextInput(attrs={**VERBATIM, "list": "known-users"}),
    )
    field_order = ("username", "role")

    def clean_username(self) -> User:
        name = User.normalize_username(self.cleaned_data["username"])
        user = User.objects.filter(username=name, is_active=True).first()
        if user is None:
            raise forms.ValidationError(
                _("No active user has this name. Send an invitation to add a new user."), code="unknown"
            )
        return user


class InviteForm(RoleForm):
    """Form of an invitation to one account."""

    note = forms.CharField(
        label=_("Recipient"),
        max_length=150,
        required=False,
        help_text=_("A note so you can recognize this invitation."),
        widget=forms.TextInput(attrs=VERBATIM),
    )
    days = forms.TypedChoiceField(label=_("Link expires after"), choices=DAYS, coerce=int, initial=7)
    field_order: tuple[str, ...] = ("note", "role", "days")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].initial = Role.EDITOR


class ServerInviteForm(InviteForm):
    """Form of an admin's invitation, to any account or as an admin."""

    account = forms.ModelChoiceField(
        label=_("Account"),
        queryset=accounts.listed(),
        required=False,
        empty_label=_("none"),
    )
    is_admin = forms.BooleanField(label=_("Admin of this server"), required=False)
    field_order = ("note", "account", "role", "is_admin", "days")


class JoinForm(SetupForm):
    """Form that creates the invited user."""

    def clean_username(self) -> str:
        name: str = User.normalize_username(self.cleaned_data["username"])
        if User.objects.filter(username=name).exists():
            raise forms.ValidationError(_("This user name is taken. If it is yours, sign in first."))
        return name

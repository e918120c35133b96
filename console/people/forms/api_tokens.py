"""A token of the management API, as somebody asks for one."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from console.models import User
from storage.domain.access.roles import Scope
from storage.models import Account
from storage.operations.api_tokens import TokenRequest
from storage.operations.members import visible_accounts

SCOPES = [
    (Scope.READ.value, _("Read: lists, settings, activity")),
    (Scope.WRITE.value, _("Write: also make, change and delete tables")),
    (Scope.MANAGE.value, _("Manage: everything that I may, also keys, signatures, members and accounts")),
]
LIFETIMES = [
    (7, _("7 days")),
    (30, _("30 days")),
    (90, _("90 days")),
    (365, _("one year")),
    (0, _("until it is revoked")),
]


class TokenForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=64,
        help_text=_("What uses it, as “CI of the shop”; it stands in the record of activity."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scope = forms.TypedChoiceField(
        label=_("Scope"), choices=SCOPES, coerce=Scope, initial=Scope.READ.value, widget=forms.RadioSelect
    )
    account = forms.ChoiceField(
        label=_("Account"),
        required=False,
        help_text=_("Another account is not there for the token, whatever you may do in it."),
    )
    days = forms.TypedChoiceField(label=_("It works for"), choices=LIFETIMES, coerce=int, initial=90)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._accounts = {account.name: account for account, _role in visible_accounts(user)}
        choices = [("", _("Every account that I may see")), *((name, name) for name in self._accounts)]
        self.fields["account"].choices = choices  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError(_("A name is made of characters that can be seen."))
        return name

    def wanted(self, now: datetime) -> TokenRequest:
        data = self.cleaned_data
        account: Account | None = self._accounts.get(data["account"])
        days: int = data["days"]
        return TokenRequest(
            data["name"], data["scope"], account, now + timedelta(days=days) if days else None
        )

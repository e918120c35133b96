"""API tokens: the form for a new one, and the rows of their list."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.models import User
from storage.domain.access.roles import Scope
from storage.models import Account
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.people.members import visible_accounts

SCOPES = [
    (Scope.READ.value, _("Read: view lists, settings and activity")),
    (Scope.WRITE.value, _("Write: also create, change and delete tables")),
    (Scope.OPERATE.value, _("Operate: also change settings and delete accounts, but give nobody access")),
    (
        Scope.MANAGE.value,
        _("Manage: everything you can do, including keys, SAS tokens, members and accounts"),
    ),
]
LIFETIMES = [
    (7, _("7 days")),
    (30, _("30 days")),
    (90, _("90 days")),
    (365, _("1 year")),
    (0, _("No expiration")),
]


class TokenForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=64,
        help_text=_("What uses the token, e.g. “Shop CI”. The name appears in the activity log."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scope = forms.TypedChoiceField(
        label=_("Scope"), choices=SCOPES, coerce=Scope, initial=Scope.READ.value, widget=forms.RadioSelect
    )
    account = forms.ChoiceField(
        label=_("Account"),
        required=False,
        help_text=_("Limits the token to this account, even if you have access to others."),
    )
    days = forms.TypedChoiceField(label=_("Expires after"), choices=LIFETIMES, coerce=int, initial=90)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._accounts = {account.name: account for account in visible_accounts(user)}
        choices = [("", _("All accounts you can access")), *((name, name) for name in self._accounts)]
        self.fields["account"].choices = choices  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError(_("The name contains invisible characters. Remove them."))
        return name

    def wanted(self, now: datetime) -> TokenRequest:
        data = self.cleaned_data
        account: Account | None = self._accounts.get(data["account"])
        days: int = data["days"]
        return TokenRequest(
            data["name"], data["scope"], account, now + timedelta(days=days) if days else None
        )


def token_rows(user: User) -> list[dict[str, Any]]:
    """Return the tokens of a user as rows of their list."""
    now, scopes = timezone.now(), dict(SCOPES)
    return [
        {
            "token": token,
            "scope": scopes.get(token.scope, token.scope),
            "is_expired": api_tokens.is_expired(token, now),
        }
        for token in api_tokens.for_user(user)
    ]

"""Signing in, and proving again who one is."""

from typing import Any

from allauth.account.forms import LoginForm
from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from django.utils.translation import gettext_lazy as _

from console.site import rate_limits


class SignInForm(LoginForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)  # the labels say it
        login = self.fields["login"]
        login.label = _("User name")
        login.widget.attrs.update({"autocapitalize": "none", "spellcheck": "false", "autofocus": True})


class _Code:
    """The field of a code: of an app, or one of the codes that were written down."""

    fields: Any
    user: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["code"]
        field.label = _("Code")
        field.max_length = 32
        field.widget.attrs.pop("placeholder", None)
        field.widget.attrs.update({"inputmode": "numeric", "autocapitalize": "none", "spellcheck": "false"})

    def clean_code(self) -> str:
        rate_limits.refuse_if_limited(context.request, f"mfa-auth-user-{self.user.pk}")
        code: str = super().clean_code()  # type: ignore[misc]
        return code


class CodeForm(_Code, AuthenticateForm):  # type: ignore[misc]
    pass


class CodeAgainForm(_Code, ReauthenticateForm):  # type: ignore[misc]
    pass

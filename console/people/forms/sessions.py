"""Forms for signing in, confirming one's identity and setting up an authenticator app."""

from typing import Any

from allauth.account.forms import LoginForm
from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from django.utils.translation import gettext_lazy as _

from console.site import rate_limits


class SignInForm(LoginForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)  # the label is enough
        login = self.fields["login"]
        login.label = _("User name")
        login.widget.attrs.update({"autocapitalize": "none", "spellcheck": "false", "autofocus": True})


class _CodeMixin:
    """Mixin with a field for an authenticator code or recovery code."""

    fields: Any
    user: Any
    label = _("Code")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["code"]
        field.label = self.label
        field.max_length = 32
        field.widget.attrs.pop("placeholder", None)
        field.widget.attrs.update({"inputmode": "numeric", "autocapitalize": "none", "spellcheck": "false"})

    def clean_code(self) -> str:
        rate_limits.refuse_if_limited(context.request, f"mfa-auth-user-{self.user.pk}")
        code: str = super().clean_code()  # type: ignore[misc]
        return code


class CodeForm(_CodeMixin, AuthenticateForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["autofocus"] = True


class ReauthenticateCodeForm(_CodeMixin, ReauthenticateForm):  # type: ignore[misc]
    pass


class AppForm(_CodeMixin, ActivateTOTPForm):  # type: ignore[misc]
    """Form that sets up an authenticator app."""

    label = _("Code from the app")

"""Setting up what one signs in with."""

from typing import Any

from allauth.core import context
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import AddWebAuthnForm, EditWebAuthnForm
from django import forms
from django.utils.translation import gettext_lazy as _

from console import limits

NAME_LENGTH = 64


def named() -> forms.CharField:
    return forms.CharField(
        label=_("Name"),
        help_text=_("What tells it from others: of a device, or of where it is kept."),
        max_length=NAME_LENGTH,
    )


class PasskeyForm(AddWebAuthnForm):  # type: ignore[misc]
    name = named()
    passwordless = forms.BooleanField(widget=forms.HiddenInput, initial=True)


class RenameForm(EditWebAuthnForm):  # type: ignore[misc]
    name = named()


class AppForm(ActivateTOTPForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["code"]
        field.label = _("The code that the app shows")
        field.widget.attrs.pop("placeholder", None)
        field.widget.attrs.update({"inputmode": "numeric", "spellcheck": "false"})

    def clean_code(self) -> str:
        limits.refuse_if_limited(context.request, f"mfa-auth-user-{self.user.pk}")
        code: str = super().clean_code()
        return code

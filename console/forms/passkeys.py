"""What a browser answers when it is asked for a passkey."""

from collections.abc import Callable
from typing import Any, Final

from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    EditWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from django import forms
from django.utils.translation import gettext_lazy as _

# what the libraries raise for an answer that no browser gives
MALFORMED: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError)
NAME_LENGTH: Final = 64


def _checked(clean: Callable[[], Any]) -> Any:
    try:
        return clean()
    except forms.ValidationError:
        raise
    except MALFORMED:
        raise forms.ValidationError(_("This is no passkey."), code="malformed") from None


def _named() -> forms.CharField:
    return forms.CharField(
        label=_("Name"),
        help_text=_("What tells it from others: of a device, or of where it is kept."),
        max_length=NAME_LENGTH,
    )


class AddForm(AddWebAuthnForm):  # type: ignore[misc]
    name = _named()
    passwordless = forms.BooleanField(widget=forms.HiddenInput, initial=True)

    def clean(self) -> Any:
        return _checked(super().clean)


class RenameForm(EditWebAuthnForm):  # type: ignore[misc]
    name = _named()


class SignInForm(LoginWebAuthnForm):  # type: ignore[misc]
    def clean_credential(self) -> Any:
        return _checked(super().clean_credential)


class SecondFactorForm(AuthenticateWebAuthnForm):  # type: ignore[misc]
    def clean_credential(self) -> Any:
        return _checked(super().clean_credential)


class AgainForm(ReauthenticateWebAuthnForm):  # type: ignore[misc]
    def clean_credential(self) -> Any:
        return _checked(super().clean_credential)

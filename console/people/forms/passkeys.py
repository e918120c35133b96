"""Forms for the data that browsers send about passkeys."""

from collections.abc import Callable
from functools import partial
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

# errors that the libraries raise for malformed input
MALFORMED: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
NAME_LENGTH: Final = 64


def _checked(clean: Callable[[], Any]) -> Any:
    try:
        return clean()
    except forms.ValidationError:
        raise
    except MALFORMED:
        raise forms.ValidationError(
            _("The browser did not send a valid passkey. Try again."), code="malformed"
        ) from None


class _CredentialField(forms.JSONField):
    """JSON field that also rejects input on which Python's parser fails: huge numbers, extreme nesting."""

    def __init__(self) -> None:
        super().__init__(required=True, widget=forms.HiddenInput)

    def to_python(self, value: Any) -> Any:
        return _checked(partial(super().to_python, value))

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            return super().bound_data(data, initial)
        except (ValueError, RecursionError):
            return None


def _name_field() -> forms.CharField:
    return forms.CharField(
        label=_("Name"),
        help_text=_("A name to recognize it by, e.g. the device or password manager that stores it."),
        max_length=NAME_LENGTH,
    )


class AddForm(AddWebAuthnForm):  # type: ignore[misc]
    credential = _CredentialField()
    name = _name_field()
    passwordless = forms.BooleanField(widget=forms.HiddenInput, initial=True)

    def clean(self) -> Any:
        return _checked(super().clean)


class RenameForm(EditWebAuthnForm):  # type: ignore[misc]
    name = _name_field()


class _AuthenticationForm(forms.Form):
    credential = _CredentialField()

    def clean_credential(self) -> Any:
        return _checked(super().clean_credential)  # type: ignore[misc]


class SignInForm(_AuthenticationForm, LoginWebAuthnForm):  # type: ignore[misc]
    pass


class SecondFactorForm(_AuthenticationForm, AuthenticateWebAuthnForm):  # type: ignore[misc]
    pass


class ReauthenticateForm(_AuthenticationForm, ReauthenticateWebAuthnForm):  # type: ignore[misc]
    pass

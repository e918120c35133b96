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
        raise forms.ValidationError(
            _("The browser did not send a valid passkey. Try again."), code="malformed"
        ) from None


class _Credential(forms.JSONField):
    """Also of a client that sends what Python's JSON reader gives up on: numbers without end, endless depth."""

    def __init__(self) -> None:
        super().__init__(required=True, widget=forms.HiddenInput)

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except (ValueError, RecursionError):
            raise forms.ValidationError(
                _("The browser did not send a valid passkey. Try again."), code="malformed"
            ) from None

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            return super().bound_data(data, initial)
        except (ValueError, RecursionError):
            return None


def _named() -> forms.CharField:
    return forms.CharField(
        label=_("Name"),
        help_text=_("A name to recognize it by, e.g. the device or password manager that stores it."),
        max_length=NAME_LENGTH,
    )


class AddForm(AddWebAuthnForm):  # type: ignore[misc]
    credential = _Credential()
    name = _named()
    passwordless = forms.BooleanField(widget=forms.HiddenInput, initial=True)

    def clean(self) -> Any:
        return _checked(super().clean)


class RenameForm(EditWebAuthnForm):  # type: ignore[misc]
    name = _named()


class SignInForm(LoginWebAuthnForm):  # type: ignore[misc]
    credential = _Credential()

    def clean_credential(self) -> Any:
        return _checked(super().clean_credential)


class SecondFactorForm(AuthenticateWebAuthnForm):  # type: ignore[misc]
    credential = _Credential()

    def clean_credential(self) -> Any:
        return _checked(super().clean_credential)


class AgainForm(ReauthenticateWebAuthnForm):  # type: ignore[misc]
    credential = _Credential()

    def clean_credential(self) -> Any:
        return _checked(super().clean_credential)

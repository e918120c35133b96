"""Signing in."""

from typing import Any

from allauth.account.forms import LoginForm


class SignInForm(LoginForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)  # the labels say it
        self.fields["login"].widget.attrs.update({"autocapitalize": "none", "spellcheck": "false"})

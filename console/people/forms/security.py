"""Setting up an app that shows codes."""

from typing import Any

from allauth.core import context
from allauth.mfa.totp.forms import ActivateTOTPForm
from django.utils.translation import gettext_lazy as _

from console.site import rate_limits


class AppForm(ActivateTOTPForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["code"]
        field.label = _("Code from the app")
        field.widget.attrs.pop("placeholder", None)
        field.widget.attrs.update({"inputmode": "numeric", "spellcheck": "false"})

    def clean_code(self) -> str:
        rate_limits.refuse_if_limited(context.request, f"mfa-auth-user-{self.user.pk}")
        code: str = super().clean_code()
        return code

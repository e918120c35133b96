"""Form for the first admin, and validation shared by all new passwords."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.password_validation import MinimumLengthValidator, validate_password
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from console.models import User
from console.site.forms import VERBATIM


def new_password(label: Any) -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": "new-password"})
    return forms.CharField(label=label, strip=False, max_length=1024, widget=widget)


def password_rules() -> str:
    """Return one sentence with the password rules of the configured validators."""
    least = MinimumLengthValidator().min_length
    return _("At least %(number)s characters, not a common password, and unlike your user name.") % {
        "number": least
    }


class SetupForm(forms.Form):
    username = forms.CharField(
        label=_("User name"),
        help_text=_("You sign in with this name. An e-mail address works well."),
        max_length=150,
        validators=User._meta.get_field("username").validators,
        widget=forms.TextInput(attrs={**VERBATIM, "autocomplete": "username"}),
    )
    password = new_password(_("Password"))
    repeated = new_password(_("Confirm password"))
    # the language of the page, which is chosen below the form
    language = forms.ChoiceField(choices=settings.LANGUAGES, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].help_text = password_rules()
        self.fields["language"].initial = get_language()

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        check_new_password(self, User(username=found.get("username", "")))
        return found


def check_new_password(form: forms.Form, user: User) -> None:
    """Add form errors unless the validators accept the password and both fields match."""
    password, repeated = form.cleaned_data.get("password"), form.cleaned_data.get("repeated")
    if password is None:
        return
    try:
        validate_password(password, user)
    except forms.ValidationError as error:
        form.add_error("password", error)
    if repeated is not None and repeated != password:
        form.add_error("repeated", _("The passwords do not match."))

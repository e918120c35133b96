"""Forms for preferences and the password."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from console.models import Density, EditMode, Theme, User
from console.people import passwords
from console.people.forms.setup import check_new_password, new_password, password_rules
from console.site.time_zones import UTC, names
from storage.core import registry
from storage.core.subject import Hook


def time_zones() -> list[tuple[str, Any]]:
    others = names()[1:]
    return [("", _("Same as this browser")), (UTC, "UTC"), *((name, name) for name in others)]


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]
    language = forms.ChoiceField(label=_("Language"), choices=settings.LANGUAGES)
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        choices=time_zones,
        required=False,
        help_text=_("Used for times in the console. Times inside entities stay in UTC, as they are stored."),
    )
    theme = forms.ChoiceField(label=_("Theme"), choices=Theme, widget=forms.RadioSelect)
    density = forms.ChoiceField(label=_("Table density"), choices=Density, widget=forms.RadioSelect)
    edit_mode = forms.ChoiceField(
        label=_("Save cell changes"),
        help_text=_("In protected accounts, changes are always collected first and saved together."),
        choices=EditMode,
        widget=forms.RadioSelect,
    )
    shortcuts = forms.BooleanField(
        label=_("Single-key shortcuts"),
        help_text=_(
            "For example / for the filter and ? for the list of shortcuts. Turn them off if you use speech input."
        ),
        required=False,
    )

    hides_presence = forms.BooleanField(
        label=_("Hide what I have open"),
        help_text=_("Others with access do not see that you are looking at a table or an entity."),
        required=False,
    )

    class Meta:
        model = User
        fields = ("language", "time_zone", "theme", "density", "edit_mode", "shortcuts", "hides_presence")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not registry.hooks(Hook.VISIBILITY_CHANGED):
            del self.fields["hides_presence"]


class PasswordForm(forms.Form):
    current = forms.CharField(
        label=_("Current password"),
        strip=False,
        max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    password = new_password(_("New password"))
    repeated = new_password(_("Confirm new password"))

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        if not user.has_usable_password():
            del self.fields["current"]
        self.fields["password"].help_text = password_rules()

    def clean_current(self) -> str:
        current: str = self.cleaned_data["current"]
        passwords.check_unexpired(self.user)
        if not self.user.check_password(current):
            raise forms.ValidationError(_("Incorrect current password."))
        return current

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        check_new_password(self, self.user)
        is_same = cleaned.get("current") and cleaned.get("current") == cleaned.get("password")
        if self.user.has_temporary_password and is_same:
            self.add_error("password", _("Choose a password other than the generated one."))
        return cleaned

"""Making an account, and what its owner sets."""

import re
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.forms import NameRule
from storage.domain.access.addresses import read_network
from storage.domain.service import lifetimes
from storage.domain.service.labels import LabelError, read_lines, write_lines
from storage.domain.values.names import is_account_name
from storage.models import Account
from storage.operations import accounts

_CHARACTERS = re.compile(r"[a-z0-9]+")

# each at least 3:1 against the surfaces of both themes
COLOURS: Final = (
    ("", gettext_lazy("None")),
    ("#d1383f", gettext_lazy("Red")),
    ("#c2600a", gettext_lazy("Orange")),
    ("#a67c00", gettext_lazy("Amber")),
    ("#2f8f4e", gettext_lazy("Green")),
    ("#0f8a82", gettext_lazy("Teal")),
    ("#3b76d6", gettext_lazy("Blue")),
    ("#8b5fd6", gettext_lazy("Purple")),
    ("#c8458f", gettext_lazy("Pink")),
)


class DescriptionForm(forms.Form):
    """What people say about an account."""

    label = forms.CharField(
        label=gettext_lazy("Label"),
        max_length=64,
        required=False,
        help_text=gettext_lazy("Stands beside the name, as “Test” or “Shop, production”."),
    )
    colour = forms.ChoiceField(
        label=gettext_lazy("Colour"),
        choices=COLOURS,
        required=False,
        widget=forms.RadioSelect,
        help_text=gettext_lazy(
            "A band on every page of the account, so that nobody mistakes it for another."
        ),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    labels = forms.CharField(
        label=gettext_lazy("Labels"),
        required=False,
        help_text=gettext_lazy("For scripts to find it by, one in a line, as branch=main."),
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
    )

    def clean_labels(self) -> dict[str, str]:
        try:
            return read_lines(self.cleaned_data["labels"])
        except LabelError:
            raise forms.ValidationError(_LABEL_RULES) from None


_LABEL_RULES: Final = gettext_lazy(
    "A label is a name, = and a value: up to 32 of them, one in a line, names of letters, digits and . _ / - only."
)
FOR_GOOD: Final = "never"
# texts as domain.lifetimes reads them
LIFETIMES: Final = (
    ("8h", gettext_lazy("8 hours")),
    ("1d", gettext_lazy("one day")),
    ("7d", gettext_lazy("7 days")),
    ("30d", gettext_lazy("30 days")),
)


class NewAccountForm(DescriptionForm):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=64,
        widget=forms.TextInput(
            attrs={"class": "mono", "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )
    lives = forms.ChoiceField(
        label=gettext_lazy("It lives"),
        choices=((FOR_GOOD, gettext_lazy("for good")), *LIFETIMES),
        initial=FOR_GOOD,
        required=False,
        help_text=gettext_lazy(
            "Then it refuses all requests, and a day later it is deleted with its tables."
        ),
    )
    field_order = ("name", "label", "colour", "description", "labels", "lives")

    def settings(self) -> dict[str, Any]:
        """What operations.accounts.add takes."""
        found = dict(self.cleaned_data)
        lives = found.pop("lives")
        return {**found, "lifetime": None if lives in {"", FOR_GOOD} else lifetimes.read_lifetime(lives)}

    @property
    def rules(self) -> list[NameRule]:
        return name_rules(str(self["name"].value() or ""))

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not all(rule.is_kept for rule in name_rules(name)):
            raise forms.ValidationError(_("An account cannot have this name."))
        return name


def name_rules(name: str) -> list[NameRule]:
    """What may name a new account, each rule by itself, so that all can be told at once."""
    is_known = bool(name)
    is_taken = name in accounts.names()
    return [
        NameRule(_("3 to 24 characters"), 3 <= len(name) <= 24 if is_known else None),
        NameRule(
            _("lower-case letters a to z and digits"), bool(_CHARACTERS.fullmatch(name)) if is_known else None
        ),
        NameRule(_("There is an account of this name already"), is_kept=False)
        if is_taken
        else NameRule(_("not in use on this server"), is_account_name(name) or None),
    ]


class GuardForm(forms.Form):
    """What protects an account."""

    protected = forms.BooleanField(
        label=gettext_lazy("Protected"),
        required=False,
        help_text=gettext_lazy("It cannot be deleted, and deleting its tables asks for its name."),
    )
    read_only = forms.BooleanField(
        label=gettext_lazy("Read-only"),
        required=False,
        help_text=gettext_lazy(
            "Every write is refused: here, and to applications with 403 InsufficientAccountPermissions. That is"
            " creating and deleting tables, changing entities, access policies and service properties."
        ),
    )


class AccessForm(forms.Form):
    """Who gets an answer from an account."""

    enabled = forms.BooleanField(
        label=gettext_lazy("Switched on"),
        required=False,
        help_text=gettext_lazy("Switched off, it refuses all requests of applications. Nothing is lost."),
    )
    shared_key_access = forms.BooleanField(
        label=gettext_lazy("Accept account keys"),
        required=False,
        help_text=gettext_lazy(
            "And shared access signatures, which are signed with them. Otherwise only bearer tokens are."
        ),
    )
    networks = forms.CharField(
        label=gettext_lazy("Networks"),
        required=False,
        help_text=gettext_lazy(
            "Addresses and networks that are answered, one in a line, as 192.0.2.1 or 192.0.2.0/24; none: all are."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )

    def clean_networks(self) -> list[str]:
        texts = [line.strip() for line in self.cleaned_data["networks"].splitlines() if line.strip()]
        wrong = [text for text in texts if read_network(text) is None]
        if wrong:
            raise forms.ValidationError(
                _("This is no address and no network: %(texts)s") % {"texts": ", ".join(wrong)}
            )
        return texts


class LifetimeForm(forms.Form):
    """How long an account lives from now on."""

    lives = forms.ChoiceField(
        label=gettext_lazy("From now on it lives"),
        choices=((FOR_GOOD, gettext_lazy("for good")), *LIFETIMES, ("until", gettext_lazy("until a time"))),
    )
    until = forms.DateTimeField(
        label=gettext_lazy("Until"),
        required=False,
        help_text=gettext_lazy("In your time zone, if a time is chosen."),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        now = timezone.now()
        if found.get("lives") == "until" and "until" in found:
            end = found["until"]
            if end is None or not now < end <= now + lifetimes.LONGEST:
                self.add_error("until", _("Give a time within the next 366 days."))
        return found

    def end(self) -> datetime | None:
        match self.cleaned_data["lives"]:
            case "never":
                return None
            case "until":
                end: datetime = self.cleaned_data["until"]
                return end
            case lifetime:
                return timezone.now() + lifetimes.read_lifetime(lifetime)


FORMS: Final[dict[str, type[forms.Form]]] = {
    "description": DescriptionForm,
    "lifetime": LifetimeForm,
    "guard": GuardForm,
    "access": AccessForm,
}


def initial_of(account: Account) -> dict[str, Any]:
    return {
        "label": account.label,
        "colour": account.colour,
        "description": account.description,
        "labels": write_lines(account.labels),
        "lives": FOR_GOOD if account.expires_at is None else "until",
        "until": account.expires_at,
        "protected": account.protected,
        "read_only": account.read_only,
        "enabled": account.enabled,
        "shared_key_access": account.shared_key_access,
        "networks": "\n".join(account.networks),
    }


# hours that a replaced key may still be accepted
GRACES: Final = (
    ("0", gettext_lazy("At once, as in Azure")),
    ("1", gettext_lazy("After 1 hour")),
    ("8", gettext_lazy("After 8 hours")),
    ("24", gettext_lazy("After a day")),
    ("72", gettext_lazy("After 3 days")),
    ("168", gettext_lazy("After a week")),
)


class NameForm(forms.Form):
    """The name of the account, typed by whoever is about to do what cannot be undone."""

    name = forms.CharField(
        label=gettext_lazy("Name of the account"),
        max_length=64,
        widget=forms.TextInput(
            attrs={"class": "mono", "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )

    def __init__(self, *args: Any, account: Account, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.account = account
        self.fields["name"].help_text = _("Type %(name)s to confirm.") % {"name": account.name}

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self.account.name:
            raise forms.ValidationError(_("This is not the name of the account."))
        return name


class RotationForm(NameForm):
    grace = forms.ChoiceField(
        label=gettext_lazy("The old key is refused"),
        choices=GRACES,
        initial="0",
        help_text=gettext_lazy(
            "Until then both are accepted, and so is what they signed. Azure has no such grace: there it ends at once."
        ),
    )
    field_order = ("grace", "name")

    def clean_grace(self) -> timedelta:
        return timedelta(hours=int(self.cleaned_data["grace"]))

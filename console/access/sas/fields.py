"""Form fields of a new SAS token, and of the notes on one."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy

from console.access.sas.labels import PERMISSIONS, RESOURCE_TYPES
from console.site.forms import MONO, MomentInput
from storage.access.sas import SasDescription

STARTS: Final = (
    ("", gettext_lazy("Immediately")),
    ("now", gettext_lazy("Now")),
    ("ago", gettext_lazy("5 minutes ago")),
    ("at", gettext_lazy("Custom…")),
)
EXPIRIES: Final = (
    ("1h", gettext_lazy("In 1 hour")),
    ("1d", gettext_lazy("In 1 day")),
    ("7d", gettext_lazy("In 7 days")),
    ("30d", gettext_lazy("In 30 days")),
    ("quarter", gettext_lazy("End of the quarter")),
    ("at", gettext_lazy("Custom…")),
)


def _choice(label: Any, choices: Any, initial: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=choices, required=False, initial=initial)


def _letters(label: Any, words: Mapping[str, Any], initial: list[str]) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(label=label, required=False, choices=words.items(), initial=initial)


def _key_field(label: Any) -> forms.CharField:
    # keys may start and end with spaces
    return forms.CharField(
        label=label, required=False, strip=False, max_length=1024, widget=forms.TextInput(attrs=MONO)
    )


def _time_field(label: Any) -> forms.DateTimeField:
    return forms.DateTimeField(label=label, required=False, widget=MomentInput())


class DescriptionForm(forms.Form):
    """Form for the notes on a token."""

    label = forms.CharField(
        label=gettext_lazy("Label"),
        max_length=64,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("A name to recognize it by, such as “partner demo” or “nightly import”."),
    )
    purpose = forms.CharField(
        label=gettext_lazy("Purpose"),
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    owner = forms.CharField(
        label=gettext_lazy("Owner"),
        max_length=150,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Who to contact before revoking it."),
    )

    def description(self) -> SasDescription:
        found = self.cleaned_data
        return SasDescription(found["label"], found["purpose"], found["owner"])


class SasFields(DescriptionForm):
    kind = _choice(
        gettext_lazy("Scope"),
        (("table", gettext_lazy("One table")), ("account", gettext_lazy("Entire account"))),
        "table",
    )
    table = forms.CharField(
        label=gettext_lazy("Table"),
        required=False,
        widget=forms.TextInput(attrs={**MONO, "list": "tables-there-are"}),
        error_messages={"required": gettext_lazy("Choose a table.")},
    )
    policy = forms.CharField(label=gettext_lazy("Policy"), required=False, strip=False)
    permissions = _letters(gettext_lazy("Permissions"), PERMISSIONS, ["r"])
    levels = _letters(gettext_lazy("Resource types"), RESOURCE_TYPES, ["c", "o"])
    start = _choice(gettext_lazy("Start"), STARTS)
    start_at = _time_field(gettext_lazy("Start time"))
    expiry = _choice(gettext_lazy("Expiry"), EXPIRIES, "1d")
    expiry_at = _time_field(gettext_lazy("Expiry time"))
    spk = _key_field(gettext_lazy("First PartitionKey"))
    srk = _key_field(gettext_lazy("First RowKey"))
    epk = _key_field(gettext_lazy("Last PartitionKey"))
    erk = _key_field(gettext_lazy("Last RowKey"))
    address = forms.CharField(
        label=gettext_lazy("Allowed IP addresses"),
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs={**MONO, "placeholder": "10.0.0.0/8"}),
        help_text=gettext_lazy(
            "An address, a range such as 10.0.0.1-10.0.0.9, or a network. Leave blank to allow all addresses."
        ),
    )
    protocol = _choice(
        gettext_lazy("Protocol"),
        (("https", gettext_lazy("HTTPS only")), ("https,http", gettext_lazy("HTTPS or HTTP"))),
    )
    signer = _choice(gettext_lazy("Signing key"), (("1", "key1"), ("2", "key2")), "1")
    field_order = ("kind", "table", "policy", "permissions", "levels")

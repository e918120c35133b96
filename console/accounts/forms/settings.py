"""Forms for a new account, and for its settings."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.account_settings import SECTIONS
from console.site.forms import MONO, MomentInput, NameRule
from storage.accounts import accounts, quotas
from storage.accounts.accounts import NewAccount
from storage.core import lifetimes
from storage.core.account_settings import SETTINGS, Setting
from storage.core.labels import LabelError, read_lines, write_lines
from storage.core.quotas import LABELS
from storage.domain.access.addresses import read_network
from storage.domain.requests.consistency import Consistency
from storage.domain.requests.strictness import Strictness
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import is_account_name
from storage.models import Account

_CHARACTERS = re.compile(r"[a-z0-9]+")

# each has a contrast of at least 3:1 in both themes
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


LEVELS: Final = (
    (Consistency.STRONG.value, gettext_lazy("Strong")),
    (Consistency.BOUNDED_STALENESS.value, gettext_lazy("Bounded staleness")),
    (Consistency.SESSION.value, gettext_lazy("Session")),
    (Consistency.CONSISTENT_PREFIX.value, gettext_lazy("Consistent prefix")),
    (Consistency.EVENTUAL.value, gettext_lazy("Eventual")),
)

STRICTNESSES: Final = (
    (Strictness.FRIENDLY.value, gettext_lazy("Friendly: serve what can be served")),
    (Strictness.AZURE.value, gettext_lazy("As strict as Azure: refuse what Azure refuses")),
)

_CODE: Final = {"class": "mono", "spellcheck": "false"}
_LABEL_RULES: Final = gettext_lazy(
    "Write each label as key=value on its own line: at most %(most)s labels, keys of letters, digits and . _ / - only."
)


class _LabelsField(forms.CharField):
    """Field for account labels, one per line."""

    widget = forms.Textarea(attrs={"rows": 2, **_CODE})

    def prepare_value(self, value: Any) -> Any:
        return write_lines(value) if isinstance(value, dict) else value

    def clean(self, value: Any) -> dict[str, str]:
        try:
            labels = read_lines(super().clean(value))
            quotas.check_all_labels(labels)
        except LabelError:
            raise forms.ValidationError(_LABEL_RULES, params={"most": quotas.limit(LABELS)}) from None
        return labels


class _NetworksField(forms.CharField):
    """Field for IP addresses and networks, one per line."""

    widget = forms.Textarea(attrs={"rows": 3, **_CODE})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        texts = [line.strip() for line in super().clean(value).splitlines() if line.strip()]
        wrong = [text for text in texts if read_network(text) is None]
        if wrong:
            raise forms.ValidationError(
                _("Not an IP address or range: %(texts)s") % {"texts": ", ".join(wrong)}
            )
        return texts


class _NumberField(forms.IntegerField):
    """Number field in the unit of its setting."""

    def __init__(self, setting: Setting, **options: Any) -> None:
        self._unit = setting.unit
        least = None if setting.least is None else setting.least // setting.unit
        most = _MOST if setting.most is None else setting.most
        super().__init__(**{**options, "required": not setting.is_nullable}, min_value=least, max_value=most)

    def prepare_value(self, value: Any) -> Any:
        return value // self._unit if isinstance(value, int) else value

    def clean(self, value: Any) -> int | None:
        number = super().clean(value)
        return None if number is None else number * self._unit


_MOST: Final = 1 << 30


class _DescribedRadios(forms.RadioSelect):
    """Radio buttons, each described by an adjacent text whose id ends in _promise."""

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(*args, **kwargs)
        option["attrs"]["aria-describedby"] = f"{option['value']}_promise"
        return option


def _field(name: str, value: Any) -> forms.Field:
    """Create the form field of a setting with a value."""
    setting = SETTINGS[name]
    help_text = _(setting.explanation) if setting.explanation else ""
    options: dict[str, Any] = {"label": _(setting.label), "help_text": help_text, "required": False}
    match name:
        case "colour":
            # the management API takes any
            own = () if value in dict(COLOURS) else ((value, _("Custom")),)
            return forms.ChoiceField(**options, choices=(*COLOURS, *own), widget=forms.RadioSelect)
        case "consistency":
            return forms.ChoiceField(**{**options, "required": True}, choices=LEVELS, widget=_DescribedRadios)
        case "strictness":
            options |= {"required": True, "choices": STRICTNESSES, "widget": forms.RadioSelect}
            return forms.ChoiceField(**options)
        case "labels":
            return _LabelsField(**options)
        case "networks":
            return _NetworksField(**options)
        case "description":
            options["widget"] = forms.Textarea(attrs={"rows": 3})
    if setting.type is bool:
        return forms.BooleanField(**options)
    return (
        _NumberField(setting, **options)
        if setting.type is int
        else forms.CharField(**options, max_length=setting.most)
    )


class SettingsForm(forms.Form):
    """Form for some settings of an account."""

    settings: Sequence[str] = ()

    def __init__(self, *args: Any, settings: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in settings or self.settings:
            self.fields[name] = _field(name, self.initial.get(name, ""))
        self.order_fields(self.field_order)


# the names of the services are not translated
KINDS: Final = (
    (AccountKind.STORAGE.value, "Azure Table storage"),
    (AccountKind.COSMOS.value, "Azure Cosmos DB for Table"),
)
NEVER: Final = "never"
# texts as domain.lifetimes reads them
LIFETIMES: Final = (
    ("8h", gettext_lazy("In 8 hours")),
    ("1d", gettext_lazy("In 1 day")),
    ("7d", gettext_lazy("In 7 days")),
    ("30d", gettext_lazy("In 30 days")),
)


class NewAccountForm(SettingsForm):
    settings = SECTIONS["description"].settings
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=64,
        widget=forms.TextInput(attrs=MONO),
    )
    kind = forms.ChoiceField(
        label=gettext_lazy("Compatible with"),
        choices=KINDS,
        initial=AccountKind.STORAGE.value,
        required=False,
        widget=forms.RadioSelect,
        help_text=gettext_lazy(
            "Sets the limits, naming rules and error messages. You cannot change it later."
        ),
    )
    lives = forms.ChoiceField(
        label=gettext_lazy("Expires"),
        choices=((NEVER, gettext_lazy("Never")), *LIFETIMES),
        initial=NEVER,
        required=False,
        help_text=gettext_lazy(
            "An expired account rejects all requests. One day later it is deleted with its tables."
        ),
    )
    field_order = ("name", "kind", "label", "colour", "description", "labels", "lives")

    def account(self) -> NewAccount:
        """Return the account that the form describes."""
        lives = self.cleaned_data["lives"]
        return NewAccount(
            kind=AccountKind(self.cleaned_data["kind"] or AccountKind.STORAGE),
            expires_at=None if lives in {"", NEVER} else timezone.now() + lifetimes.read_lifetime(lives),
            **{name: self.cleaned_data[name] for name in self.settings},
        )

    @property
    def rules(self) -> list[NameRule]:
        return name_rules(str(self["name"].value() or ""))

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not all(rule.is_kept for rule in name_rules(name)):
            raise forms.ValidationError(_("Choose a name that meets the rules below."))
        return name


def name_rules(name: str) -> list[NameRule]:
    """Check a name against each rule, so that all violations can be shown at once."""
    is_known = bool(name)
    is_taken = accounts.exists(name)
    return [
        NameRule(_("3 to 24 characters"), 3 <= len(name) <= 24 if is_known else None),
        NameRule(
            _("lowercase letters a to z and digits"), bool(_CHARACTERS.fullmatch(name)) if is_known else None
        ),
        NameRule(_("An account with this name already exists"), is_kept=False)
        if is_taken
        else NameRule(_("not in use on this server"), is_account_name(name) or None),
    ]


class LifetimeForm(forms.Form):
    """Form for the expiry of an account."""

    lives = forms.ChoiceField(
        label=gettext_lazy("Expires"),
        choices=((NEVER, gettext_lazy("Never")), *LIFETIMES, ("until", gettext_lazy("At a set time"))),
    )
    until = forms.DateTimeField(
        label=gettext_lazy("Expires at"),
        required=False,
        help_text=gettext_lazy("In your time zone. Applies if you chose “At a set time”."),
        widget=MomentInput(),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        now = timezone.now()
        if cleaned.get("lives") == "until" and "until" in cleaned:
            end = cleaned["until"]
            if end is None or not now < end <= now + lifetimes.LONGEST:
                self.add_error("until", _("Enter a time within the next 366 days."))
        return cleaned

    def end(self) -> datetime | None:
        match self.cleaned_data["lives"]:
            case "never":
                return None
            case "until":
                end: datetime = self.cleaned_data["until"]
                return end
            case lifetime:
                return timezone.now() + lifetimes.read_lifetime(lifetime)


def settings_form(name: str, account: Account, data: Any = None) -> forms.Form:
    """Create one of the forms of the settings page."""
    if name == "lifetime":
        lives = NEVER if account.expires_at is None else "until"
        return LifetimeForm(data, initial={"lives": lives, "until": account.expires_at})
    settings = SECTIONS[name].settings
    initial = {setting: getattr(account, setting) for setting in settings}
    return SettingsForm(data, initial=initial, settings=settings)


# hours for which a rotated key is still accepted
GRACE_PERIODS: Final = (
    ("0", gettext_lazy("Immediately, as on Azure")),
    ("1", gettext_lazy("After 1 hour")),
    ("8", gettext_lazy("After 8 hours")),
    ("24", gettext_lazy("After 1 day")),
    ("72", gettext_lazy("After 3 days")),
    ("168", gettext_lazy("After 1 week")),
)


class ConfirmNameForm(forms.Form):
    """Form that confirms a permanent action by the account's name."""

    name = forms.CharField(
        label=gettext_lazy("Account name"),
        max_length=64,
        widget=forms.TextInput(attrs=MONO),
    )

    def __init__(self, *args: Any, account: Account, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.account = account
        self.fields["name"].help_text = _("Type %(name)s to confirm.") % {"name": account.name}

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self.account.name:
            raise forms.ValidationError(_("The name does not match. Type the account name exactly."))
        return name


class RotationForm(ConfirmNameForm):
    grace = forms.ChoiceField(
        label=gettext_lazy("Old key expires"),
        choices=GRACE_PERIODS,
        initial="0",
        help_text=gettext_lazy(
            "Until then, both keys and the SAS tokens signed with them are accepted."
            " Azure has no grace period: the old key expires immediately."
        ),
    )
    field_order = ("grace", "name")

    def clean_grace(self) -> timedelta:
        return timedelta(hours=int(self.cleaned_data["grace"]))

"""Forms for a new account, and for its settings."""

import re
from datetime import datetime, timedelta
from typing import Any, Final, cast

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.forms import MONO, NameRule
from storage.domain.access.addresses import read_network
from storage.domain.service import lifetimes
from storage.domain.service.consistency import STALENESS_LIMIT, Consistency
from storage.domain.service.labels import LabelError, read_lines, write_lines
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import is_account_name
from storage.models import Account
from storage.operations.accounts import accounts

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


class DescriptionForm(forms.Form):
    """Label, colour, description and labels of an account."""

    label = forms.CharField(
        label=gettext_lazy("Label"),
        max_length=64,
        required=False,
        help_text=gettext_lazy("Shown next to the name, e.g. “Test” or “Shop, production”."),
    )
    colour = forms.ChoiceField(
        label=gettext_lazy("Colour"),
        choices=COLOURS,
        required=False,
        widget=forms.RadioSelect,
        help_text=gettext_lazy(
            "Shown as a band on every page of the account, so you can tell accounts apart."
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
        help_text=gettext_lazy("Key=value labels for scripts, one per line, e.g. branch=main"),
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        colour = self.initial.get("colour", "")
        if colour not in dict(COLOURS):  # the management API takes any
            cast("forms.ChoiceField", self.fields["colour"]).choices = [*COLOURS, (colour, _("Custom"))]

    def clean_labels(self) -> dict[str, str]:
        try:
            return read_lines(self.cleaned_data["labels"])
        except LabelError:
            raise forms.ValidationError(_LABEL_RULES) from None


_LABEL_RULES: Final = gettext_lazy(
    "Write each label as key=value on its own line: at most 32 labels, keys of letters, digits and . _ / - only."
)
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


class NewAccountForm(DescriptionForm):
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
        help_text=gettext_lazy("Decides about limits, names and error messages. You cannot change it later."),
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

    def settings(self) -> dict[str, Any]:
        """Return the arguments of operations.accounts.add."""
        found = dict(self.cleaned_data)
        lives = found.pop("lives")
        found["kind"] = AccountKind(found["kind"] or AccountKind.STORAGE)
        return {**found, "lifetime": None if lives in {"", NEVER} else lifetimes.read_lifetime(lives)}

    @property
    def rules(self) -> list[NameRule]:
        return name_rules(str(self["name"].value() or ""))

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not all(rule.is_kept for rule in name_rules(name)):
            raise forms.ValidationError(_("Choose a name that meets the rules below."))
        return name


def name_rules(name: str) -> list[NameRule]:
    """Check a name against each rule, so that all of them can be shown at once."""
    is_known = bool(name)
    is_taken = name in accounts.names()
    return [
        NameRule(_("3 to 24 characters"), 3 <= len(name) <= 24 if is_known else None),
        NameRule(
            _("lowercase letters a to z and digits"), bool(_CHARACTERS.fullmatch(name)) if is_known else None
        ),
        NameRule(_("An account with this name already exists"), is_kept=False)
        if is_taken
        else NameRule(_("not in use on this server"), is_account_name(name) or None),
    ]


class IndexForm(forms.Form):
    """Property indexes of an account."""

    adaptive_indexes = forms.BooleanField(
        label=gettext_lazy("Adaptive indexes"),
        required=False,
        help_text=gettext_lazy(
            "The server adds an index to a property when queries by its range scan large tables again and again,"
            " and drops it after four weeks without use. The activity log lists each one."
        ),
    )


class HistoryForm(forms.Form):
    """How long changes of entities are kept."""

    history_days = forms.IntegerField(
        label=gettext_lazy("Days to keep"),
        min_value=0,
        max_value=accounts.HISTORY_DAYS_LIMIT,
        help_text=gettext_lazy(
            "Every change of an entity is recorded, whoever makes it, so that it can be seen and undone."
            " 0 turns the history off and deletes it."
        ),
    )
    history_bytes = forms.IntegerField(
        label=gettext_lazy("Limit in MB"),
        required=False,
        min_value=accounts.LEAST_HISTORY >> 20,
        max_value=1 << 30,
        help_text=gettext_lazy("When it is reached, the oldest changes are deleted first. Empty: automatic."),
    )

    def clean_history_bytes(self) -> int | None:
        megabytes: int | None = self.cleaned_data["history_bytes"]
        return None if megabytes is None else megabytes << 20


LEVELS: Final = (
    (Consistency.STRONG.value, gettext_lazy("Strong")),
    (Consistency.BOUNDED_STALENESS.value, gettext_lazy("Bounded staleness")),
    (Consistency.SESSION.value, gettext_lazy("Session")),
    (Consistency.CONSISTENT_PREFIX.value, gettext_lazy("Consistent prefix")),
    (Consistency.EVENTUAL.value, gettext_lazy("Eventual")),
)
# what each level promises, by its name
PROMISES: Final = {
    Consistency.STRONG: gettext_lazy("Reads see every acknowledged write. The primary answers them."),
    Consistency.BOUNDED_STALENESS: gettext_lazy(
        "Reads see every write that was acknowledged longer ago than the bound below. A replica within the bound"
        " answers, otherwise the primary."
    ),
    Consistency.SESSION: gettext_lazy(
        "A client that sends back the latest x-ms-session-token sees everything it has written and read. Without"
        " the token, a read can miss even the client’s own writes. The Azure SDKs for tables do not send it by"
        " themselves."
    ),
    Consistency.CONSISTENT_PREFIX: gettext_lazy(
        "A replica answers. Reads see writes in the order in which they were committed, but the latest ones may be"
        " missing. The next read may be answered by another replica and be older."
    ),
    Consistency.EVENTUAL: gettext_lazy(
        "Promises no order. On this server it is the same as Consistent prefix, because replicas apply writes in"
        " their order."
    ),
}


class _DescribedRadios(forms.RadioSelect):
    """Each option refers to a text beside it, whose id ends in _promise."""

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(*args, **kwargs)
        option["attrs"]["aria-describedby"] = f"{option['value']}_promise"
        return option


class ConsistencyForm(forms.Form):
    """How fresh the reads of an account must be."""

    consistency = forms.ChoiceField(label=gettext_lazy("Level"), choices=LEVELS, widget=_DescribedRadios)
    max_staleness = forms.IntegerField(
        label=gettext_lazy("Bound in seconds"),
        min_value=1,
        max_value=STALENESS_LIMIT,
        help_text=gettext_lazy("Applies to Bounded staleness."),
    )


class ClusterForm(forms.Form):
    """Where the new tables of an account are, in the database of a cluster."""

    distributes = forms.BooleanField(
        label=gettext_lazy("Distribute new tables"),
        required=False,
        help_text=gettext_lazy(
            "Spreads the tables that are created from now on over the nodes of the cluster. Others stay where they are:"
            " their Settings page distributes them, and says what that costs and what does not work."
        ),
    )


class GuardForm(forms.Form):
    """Protection of an account."""

    protected = forms.BooleanField(
        label=gettext_lazy("Protected"),
        required=False,
        help_text=gettext_lazy(
            "The account cannot be deleted, and deleting a table requires typing its name."
        ),
    )
    read_only = forms.BooleanField(
        label=gettext_lazy("Read-only"),
        required=False,
        help_text=gettext_lazy(
            "Rejects every write, in the console and from applications (403 InsufficientAccountPermissions):"
            " creating and deleting tables, and changing entities, access policies and service properties."
        ),
    )


class AccessForm(forms.Form):
    """Network access and authentication of an account."""

    enabled = forms.BooleanField(
        label=gettext_lazy("Enabled"),
        required=False,
        help_text=gettext_lazy("A disabled account rejects all requests from applications. No data is lost."),
    )
    shared_key_access = forms.BooleanField(
        label=gettext_lazy("Allow storage account key access"),
        required=False,
        help_text=gettext_lazy(
            "Includes SAS tokens, which are signed with a key. If turned off, only bearer tokens are accepted."
        ),
    )
    networks = forms.CharField(
        label=gettext_lazy("Allowed IP addresses"),
        required=False,
        help_text=gettext_lazy(
            "IP addresses or ranges that may connect, one per line, e.g. 192.0.2.1 or 192.0.2.0/24."
            " Leave empty to allow all."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )

    def clean_networks(self) -> list[str]:
        texts = [line.strip() for line in self.cleaned_data["networks"].splitlines() if line.strip()]
        wrong = [text for text in texts if read_network(text) is None]
        if wrong:
            raise forms.ValidationError(
                _("Not an IP address or range: %(texts)s") % {"texts": ", ".join(wrong)}
            )
        return texts


class LifetimeForm(forms.Form):
    """Expiration of an account."""

    lives = forms.ChoiceField(
        label=gettext_lazy("Expires"),
        choices=((NEVER, gettext_lazy("Never")), *LIFETIMES, ("until", gettext_lazy("At a set time"))),
    )
    until = forms.DateTimeField(
        label=gettext_lazy("Expires at"),
        required=False,
        help_text=gettext_lazy("In your time zone. Applies if you chose “At a set time”."),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        now = timezone.now()
        if found.get("lives") == "until" and "until" in found:
            end = found["until"]
            if end is None or not now < end <= now + lifetimes.LONGEST:
                self.add_error("until", _("Enter a time within the next 366 days."))
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
    "history": HistoryForm,
    "consistency": ConsistencyForm,
    "indexes": IndexForm,
    "cluster": ClusterForm,
    "guard": GuardForm,
    "access": AccessForm,
}


def initial_values(account: Account) -> dict[str, Any]:
    return {
        "label": account.label,
        "colour": account.colour,
        "description": account.description,
        "labels": write_lines(account.labels),
        "lives": NEVER if account.expires_at is None else "until",
        "until": account.expires_at,
        "protected": account.protected,
        "read_only": account.read_only,
        "history_days": account.history_days,
        "history_bytes": None if account.history_bytes is None else account.history_bytes >> 20,
        "consistency": account.consistency,
        "max_staleness": account.max_staleness,
        "adaptive_indexes": account.adaptive_indexes,
        "distributes": account.distributes,
        "enabled": account.enabled,
        "shared_key_access": account.shared_key_access,
        "networks": "\n".join(account.networks),
    }


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
    """Confirms a permanent action by the name of the account."""

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

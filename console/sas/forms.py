"""What a new shared access signature is to say, and what people note of one."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.sas.sas_words import PERMISSIONS, RESOURCE_TYPES
from storage.domain import sas
from storage.domain.access.addresses import read_range
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import StorageError
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import Policies
from storage.domain.sas.tokens import WRITTEN_VERSION
from storage.domain.values.names import check_key, fold_table_name
from storage.models import Account, Table
from storage.operations import sas as sas_operations
from storage.operations import tables
from storage.operations.sas import SasDescription

LONG: Final = timedelta(days=30)
_YEARS: Final = (1602, 9998)  # in any zone
_LONGEST: Final = 1800  # bytes of an address

OF_TABLE: Final = "raud"
OF_ACCOUNT: Final = "rwdlacu"  # as the SDKs write them
LEVELS: Final = "sco"

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
_LIVES: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "1d": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
_PLAIN: Final = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
_MONO: Final = {"class": "mono", **_PLAIN}


def _choice(label: Any, choices: Any, **options: Any) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=choices, required=False, **options)


def _key(label: Any) -> forms.CharField:
    # keys may begin and end with spaces
    return forms.CharField(
        label=label, required=False, strip=False, max_length=1024, widget=forms.TextInput(attrs=_MONO)
    )


def _moment(label: Any) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "class": "mono"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, required=False, widget=widget)


class DescriptionForm(forms.Form):
    """What a token is known by."""

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


class SasForm(DescriptionForm):
    """Always bound: what is not given is as a new form has it."""

    kind = _choice(
        gettext_lazy("Scope"),
        (("table", gettext_lazy("One table")), ("account", gettext_lazy("Entire account"))),
    )
    table = forms.CharField(
        label=gettext_lazy("Table"),
        required=False,
        widget=forms.TextInput(attrs={**_MONO, "list": "tables-there-are"}),
        error_messages={"required": gettext_lazy("Enter the name of a table.")},
    )
    policy = forms.CharField(label=gettext_lazy("Policy"), required=False, strip=False)
    permissions = forms.MultipleChoiceField(
        label=gettext_lazy("Permissions"), required=False, choices=PERMISSIONS.items()
    )
    levels = forms.MultipleChoiceField(
        label=gettext_lazy("Resource types"), required=False, choices=RESOURCE_TYPES.items()
    )
    start = _choice(gettext_lazy("Start"), STARTS)
    start_at = _moment(gettext_lazy("Start time"))
    expiry = _choice(gettext_lazy("Expiry"), EXPIRIES)
    expiry_at = _moment(gettext_lazy("Expiry time"))
    spk = _key(gettext_lazy("First PartitionKey"))
    srk = _key(gettext_lazy("First RowKey"))
    epk = _key(gettext_lazy("Last PartitionKey"))
    erk = _key(gettext_lazy("Last RowKey"))
    address = forms.CharField(
        label=gettext_lazy("Allowed IP addresses"),
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs={**_MONO, "placeholder": "10.0.0.0/8"}),
        help_text=gettext_lazy(
            "An address, a range such as 10.0.0.1-10.0.0.9, or a network. Leave blank to allow all addresses."
        ),
    )
    protocol = _choice(
        gettext_lazy("Protocol"),
        (("https", gettext_lazy("HTTPS only")), ("https,http", gettext_lazy("HTTPS or HTTP"))),
    )
    signer = _choice(gettext_lazy("Signing key"), (("1", "key1"), ("2", "key2")))
    field_order = ("kind", "table", "policy", "permissions", "levels")

    def __init__(self, data: QueryDict, *, account: Account, now: datetime, is_secure: bool) -> None:
        self.account = account
        self.now = now
        self.sent = _completed(data, is_secure=is_secure)
        super().__init__(self.sent)
        self.fields["table"].required = self.is_of_table

    # what the choices so far lead to

    @property
    def is_of_table(self) -> bool:
        return bool(self.data["kind"] != "account")

    @cached_property
    def policies(self) -> Policies:
        return sas_operations.policies_of(self.account)

    @cached_property
    def found_table(self) -> Table | None:
        try:
            return tables.find(self.account.pk, fold_table_name(self.data.get("table", "").strip()))
        except StorageError:
            return None

    @property
    def carried(self) -> list[tuple[str, str]]:
        """What the form as it is drawn has no field for, so that it is not lost on the way."""
        hidden = list(self.locked)
        hidden += ["levels"] if self.is_of_table else _CARRIED
        return [(name, value) for name in hidden for value in self.sent.getlist(name) if value]

    @property
    def choosable(self) -> Mapping[str, AccessPolicy]:
        """The policies of the table, by identifier."""
        return self.policies.get(self.found_table.folded_name, {}) if self.found_table else {}

    @property
    def stored(self) -> AccessPolicy | None:
        return self.choosable.get(self.data.get("policy", "")) if self.is_of_table else None

    @property
    def locked(self) -> frozenset[str]:
        """What the policy says, and so the token must not."""
        return sas.fields_set_by(self.stored)

    @property
    def letters(self) -> str:
        """In the order they are offered."""
        return OF_TABLE if self.is_of_table else f"{OF_TABLE}lcw"

    @property
    def chosen_permissions(self) -> list[str]:
        return self.sent.getlist("permissions")

    @property
    def chosen_levels(self) -> list[str]:
        return self.sent.getlist("levels")

    @property
    def _order(self) -> str:
        return OF_TABLE if self.is_of_table else OF_ACCOUNT

    # field by field

    def clean_table(self) -> str:
        if not self.is_of_table:
            return ""
        if self.found_table is None:
            raise forms.ValidationError(_("No table has this name."))
        return self.found_table.name

    def clean_policy(self) -> str:
        identifier: str = self.cleaned_data["policy"] if self.is_of_table else ""
        if identifier and identifier not in self.choosable:
            raise forms.ValidationError(_("The table has no policy with this Id."))
        return identifier

    def clean_permissions(self) -> str:
        chosen = "".join(letter for letter in self._order if letter in self.cleaned_data["permissions"])
        if "permissions" in self.locked:
            return ""
        if not chosen:
            raise forms.ValidationError(_("Select at least one permission."))
        return chosen

    def clean_levels(self) -> str:
        if self.is_of_table:
            return ""
        chosen = "".join(level for level in LEVELS if level in self.cleaned_data["levels"])
        if not chosen:
            raise forms.ValidationError(_("Select at least one resource type."))
        return chosen

    def clean_address(self) -> str:
        text: str = self.cleaned_data["address"].replace(" ", "")
        if text and (found := _range(text)):
            return found
        if text:
            raise forms.ValidationError(_("Enter an IP address, a range or a network."))
        return ""

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        found["starts"] = None if "start" in self.locked else self._start(found)
        found["expires"] = None if "expiry" in self.locked else self._expiry(found)
        self._check_times(found["starts"], found["expires"])
        if self.is_of_table:
            self._check_keys(found)
        return found

    def _start(self, found: Mapping[str, Any]) -> datetime | None:
        match found.get("start"):
            case "now":
                return self.now
            case "ago":
                return self.now - timedelta(minutes=5)
            case "at":
                return self._at("start_at", found)
        return None

    def _expiry(self, found: Mapping[str, Any]) -> datetime | None:
        chosen = found.get("expiry", "")
        if chosen in _LIVES:
            return self.now + _LIVES[chosen]
        if chosen == "quarter":
            return _end_of_quarter(timezone.localtime(self.now))
        return self._at("expiry_at", found)

    def _at(self, name: str, found: Mapping[str, Any]) -> datetime | None:
        moment: datetime | None = found.get(name)
        if moment is None and name not in self.errors:
            self.add_error(name, _("Enter a time."))
        if moment is not None and not _YEARS[0] <= moment.year <= _YEARS[1]:
            self.add_error(name, _("This time is out of range."))
            return None
        return moment

    def _check_times(self, starts: datetime | None, expires: datetime | None) -> None:
        if expires is not None and expires <= self.now:
            self.add_error("expiry_at", _("The expiry must be in the future."))
        elif expires is not None and starts is not None and expires <= starts:
            self.add_error("expiry_at", _("The expiry must be after the start."))

    def _check_keys(self, found: Mapping[str, Any]) -> None:
        for name in ("spk", "srk", "epk", "erk"):
            try:
                check_key(name, found.get(name, ""))
            except StorageError as error:
                self.add_error(name, error.text)
        for row, partition in (("srk", "spk"), ("erk", "epk")):
            if found.get(row) and not found.get(partition):
                self.add_error(row, _("A RowKey also needs its PartitionKey."))
        first = found.get("spk", ""), found.get("srk", "")
        last = found.get("epk", ""), found.get("erk", "")
        if first[0] and last[0] and (first > last if last[1] else first[0] > last[0]):
            self.add_error("epk", _("The last key must not come before the first key."))

    # what comes out

    def token(self) -> TableSas | AccountSas:
        """As far as it is clear; without a signature."""
        found = self.cleaned_data
        shared = {
            "version": WRITTEN_VERSION,
            "permissions": found.get("permissions", ""),
            "start": _written(found.get("starts")),
            "expiry": _written(found.get("expires")),
            "address": found.get("address", ""),
            "protocol": found.get("protocol") or "https,http",
        }
        if not self.is_of_table:
            return AccountSas(services="t", resource_types=found.get("levels", ""), **shared)
        return TableSas(
            table=found.get("table", ""),
            identifier=found.get("policy", ""),
            start_partition=found.get("spk", ""),
            start_row=found.get("srk", "") if found.get("spk") else "",
            end_partition=found.get("epk", ""),
            end_row=found.get("erk", "") if found.get("epk") else "",
            **shared,
        )

    @property
    def key(self) -> int:
        return 2 if self.cleaned_data.get("signer") == "2" else 1

    def is_long_lived(self) -> bool:
        """Whether nothing but a new key ends it within a month."""
        expires = self.cleaned_data.get("expires")
        return expires is not None and expires - self.now > LONG and not self.cleaned_data.get("policy")

    def address_of_state(self) -> str:
        """What the address says of it, without what is as in a new form."""
        kept = QueryDict(mutable=True)
        for name in self.fields:
            values = self.sent.getlist(name)
            if values != _DEFAULTS.get(name, [""]) and (values or name in _SEVERAL):
                kept.setlist(name, values or [""])
        if len(kept.urlencode()) > _LONGEST:
            kept.pop("purpose", None)
        return kept.urlencode()


_DEFAULTS: Final[Mapping[str, list[str]]] = {
    "kind": ["table"],
    "permissions": ["r"],
    "levels": ["c", "o"],
    "expiry": ["1d"],
    "signer": ["1"],
}


_SEVERAL: Final = frozenset({"permissions", "levels"})
# what is not seen at the moment, and must be there again when it is
_CARRIED: Final = ("table", "policy", "spk", "srk", "epk", "erk")


def _completed(data: QueryDict, *, is_secure: bool) -> QueryDict:
    whole = data.copy()
    # a form that was sent as a whole has no box ticked when none is
    if "is_form" not in data:
        for name, values in _DEFAULTS.items():
            if name not in data:
                whole.setlist(name, values)
    for name in ("permissions", "levels"):
        # in an address empty means none
        whole.setlist(name, [value for value in whole.getlist(name) if value])
    if whole.get("kind") != "account":
        whole["kind"] = "table"
    if whole.get("protocol") not in {"https", "https,http"}:
        whole["protocol"] = "https" if is_secure else "https,http"
    if whole.get("expiry") not in dict(EXPIRIES):
        whole["expiry"] = "1d"
    if whole.get("signer") != "2":
        whole["signer"] = "1"
    return whole


def _range(text: str) -> str | None:
    """As a token says it, which knows no networks."""
    if read_range(text) is not None:
        return text
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    return f"{network[0]}-{network[-1]}"


def _written(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _end_of_quarter(now: datetime) -> datetime:
    month = (now.month - 1) // 3 * 3 + 4
    following = now.replace(
        year=now.year + month // 13,
        month=month if month < 13 else 1,
        day=1,
        hour=0,
        minute=0,
        second=0,
        microsecond=0,
    )
    return following - timedelta(seconds=1)

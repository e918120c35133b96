"""Form of a new SAS token: dependent choices, validation, and the unsigned token."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from console.access.policies.presets import end_of_quarter
from console.access.sas.fields import SasFields
from console.site.refusals import describe_refusal
from storage.access import sas as sas_operations
from storage.core.lifetimes import read_lifetime
from storage.domain import sas
from storage.domain.access.addresses import read_range
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import StorageError
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import Policies
from storage.domain.sas.tokens import WRITTEN_VERSION
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import check_key, fold_table_name
from storage.models import Account, Table
from storage.tables import tables

_LONG: Final = timedelta(days=30)
_YEARS: Final = (1602, 9998)  # years that the service accepts in any time zone

OF_TABLE: Final = "raud"
OF_ACCOUNT: Final = "rwdlacu"  # as the SDKs write them
LEVELS: Final = "sco"
_TABLE_FIELDS: Final = ("table", "policy", "spk", "srk", "epk", "erk")

_LONGEST: Final = 1800  # bytes of a query string


class SasForm(SasFields):
    """Form of a new SAS token; always bound, with defaults for missing fields."""

    def __init__(self, data: QueryDict, *, account: Account, now: datetime, is_secure: bool) -> None:
        self.account = account
        self.now = now
        self.sent = _complete_state(data, is_secure=is_secure)
        super().__init__(self.sent)
        self.fields["table"].required = self.is_of_table

    # fields that depend on the choices

    @property
    def is_of_table(self) -> bool:
        return bool(self.data["kind"] != "account")

    @cached_property
    def policies(self) -> Policies:
        return sas_operations.policies_of(self.account)

    @cached_property
    def found_table(self) -> Table | None:
        try:
            kind = AccountKind(self.account.kind)
            return tables.find(self.account, fold_table_name(self.data.get("table", "").strip(), kind))
        except StorageError:
            return None

    @property
    def carried(self) -> list[tuple[str, str]]:
        """Return the values without a visible field, to keep in hidden fields."""
        hidden = list(self.locked)
        hidden += ["levels"] if self.is_of_table else _TABLE_FIELDS
        return [(name, value) for name in hidden for value in self.sent.getlist(name) if value]

    @property
    def choosable(self) -> Mapping[str, AccessPolicy]:
        """Return the policies of the table, by Id."""
        return self.policies.get(self.found_table.folded_name, {}) if self.found_table else {}

    @property
    def stored(self) -> AccessPolicy | None:
        return self.choosable.get(self.data.get("policy", "")) if self.is_of_table else None

    @property
    def locked(self) -> frozenset[str]:
        """Return the fields set by the policy, which the token must omit."""
        return sas.fields_set_by(self.stored)

    @property
    def letters(self) -> str:
        """Return the selectable permissions, in order."""
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
        if text and (addresses := _to_range(text)):
            return addresses
        if text:
            raise forms.ValidationError(_("Enter an IP address, a range or a network."))
        return ""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        cleaned["starts"] = None if "start" in self.locked else self._read_start(cleaned)
        cleaned["expires"] = None if "expiry" in self.locked else self._read_expiry(cleaned)
        self._check_times(cleaned["starts"], cleaned["expires"])
        if self.is_of_table:
            self._check_keys(cleaned)
        return cleaned

    def _read_start(self, cleaned: Mapping[str, Any]) -> datetime | None:
        match cleaned.get("start"):
            case "now":
                return self.now
            case "ago":
                return self.now - timedelta(minutes=5)
            case "at":
                return self._read_time("start_at", cleaned)
        return None

    def _read_expiry(self, cleaned: Mapping[str, Any]) -> datetime | None:
        match cleaned.get("expiry", "at"):
            case "at":
                return self._read_time("expiry_at", cleaned)
            case "quarter":
                return end_of_quarter(timezone.localtime(self.now))
            case lifetime:
                return self.now + read_lifetime(lifetime)

    def _read_time(self, name: str, cleaned: Mapping[str, Any]) -> datetime | None:
        moment: datetime | None = cleaned.get(name)
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

    def _check_keys(self, cleaned: Mapping[str, Any]) -> None:
        for name in ("spk", "srk", "epk", "erk"):
            try:
                check_key(name, cleaned.get(name, ""))
            except StorageError as error:
                self.add_error(name, describe_refusal(error))
        for row, partition in (("srk", "spk"), ("erk", "epk")):
            if cleaned.get(row) and not cleaned.get(partition):
                self.add_error(row, _("A RowKey also needs its PartitionKey."))
        first = cleaned.get("spk", ""), cleaned.get("srk", "")
        last = cleaned.get("epk", ""), cleaned.get("erk", "")
        if first[0] and last[0] and (first > last if last[1] else first[0] > last[0]):
            self.add_error("epk", _("The last key must not come before the first key."))

    # the token

    def token(self) -> TableSas | AccountSas:
        """Return the unsigned token, as far as the form is valid."""
        cleaned = self.cleaned_data
        shared = {
            "version": WRITTEN_VERSION,
            "permissions": cleaned.get("permissions", ""),
            "start": _write_time(cleaned.get("starts")),
            "expiry": _write_time(cleaned.get("expires")),
            "address": cleaned.get("address", ""),
            "protocol": cleaned.get("protocol") or "https,http",
        }
        if not self.is_of_table:
            return AccountSas(services="t", resource_types=cleaned.get("levels", ""), **shared)
        return TableSas(
            table=cleaned.get("table", ""),
            identifier=cleaned.get("policy", ""),
            start_partition=cleaned.get("spk", ""),
            start_row=cleaned.get("srk", "") if cleaned.get("spk") else "",
            end_partition=cleaned.get("epk", ""),
            end_row=cleaned.get("erk", "") if cleaned.get("epk") else "",
            **shared,
        )

    @property
    def key(self) -> int:
        return 2 if self.cleaned_data.get("signer") == "2" else 1

    def is_long_lived(self) -> bool:
        """Return whether the token is valid for more than 30 days without a policy by which to revoke it."""
        expires = self.cleaned_data.get("expires")
        return expires is not None and expires - self.now > _LONG and not self.cleaned_data.get("policy")

    def query_string(self) -> str:
        """Return the query string with the fields that differ from defaults."""
        kept = QueryDict(mutable=True)
        for name, field in self.fields.items():
            values, is_list = self.sent.getlist(name), isinstance(field, forms.MultipleChoiceField)
            initial = field.initial if is_list else [field.initial or ""]
            if values != initial and (values or is_list):
                kept.setlist(name, values or [""])
        if len(kept.urlencode()) > _LONGEST:
            kept.pop("purpose", None)
        return kept.urlencode()


def _to_range(text: str) -> str | None:
    """Convert an address, range or network to a token's range; None if it is invalid."""
    if read_range(text) is not None:
        return text
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    return f"{network[0]}-{network[-1]}"


def _write_time(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _complete_state(data: QueryDict, *, is_secure: bool) -> QueryDict:
    """Fill in defaults of a URL or form, replacing unknown choices."""
    state = data.copy()
    for name, field in SasFields.base_fields.items():
        if isinstance(field, forms.MultipleChoiceField):
            # a sent form without a ticked box has no permissions; a URL without them has the initial ones
            is_left_out = name not in data and "is_form" not in data
            # in a URL, an empty value stands for none
            state.setlist(name, field.initial if is_left_out else [it for it in data.getlist(name) if it])
        elif isinstance(field, forms.ChoiceField) and not field.valid_value(state.get(name)):
            state[name] = field.initial
    if not state["protocol"]:
        state["protocol"] = "https" if is_secure else "https,http"
    return state

"""Form set of a table's policies: a form per policy, and hidden fields with the original set."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import forms
from django.http import QueryDict
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.access.policies.drafts import (
    NEW,
    PolicyDraft,
    SetDraft,
    read_identifiers,
    write_identifiers,
)
from console.access.policies.effects import LETTERS
from console.site.forms import MONO
from storage.domain.access.policies import (
    IDENTIFIER_LIMIT,
    PERMISSIONS,
    POLICY_LIMIT,
    PolicyFault,
    PolicyRule,
    SignedIdentifier,
    find_faults,
)

PREFIX: Final = "policies"
MOST_FORMS: Final = 12  # more than can be saved, so that a surplus can be shown

_FIELDS: Final = {
    PolicyRule.UNIQUE: "identifier",
    PolicyRule.IDENTIFIER: "identifier",
    PolicyRule.START: "start",
    PolicyRule.EXPIRY: "expiry",
    PolicyRule.PERMISSION: "permissions",
}


def describe_rule(rule: PolicyRule) -> str:
    match rule:
        case PolicyRule.NUMBER:
            return _("A table can have up to %(most)s policies.") % {"most": POLICY_LIMIT}
        case PolicyRule.UNIQUE:
            return _("Another policy of this table already has this Id.")
        case PolicyRule.IDENTIFIER:
            return _("An Id needs 1 to %(most)s characters and cannot contain control characters.") % {
                "most": IDENTIFIER_LIMIT
            }
        case PolicyRule.START | PolicyRule.EXPIRY:
            return _("Enter a time such as 2026-12-31 23:59, now, +7d or tomorrow, or leave it blank.")
        case PolicyRule.PERMISSION:
            return _("Permissions can contain each of the letters %(letters)s once.") % {
                "letters": PERMISSIONS
            }


@dataclass(frozen=True, slots=True)
class FieldError:
    id: str  # the id of the element to go to
    policy: str  # for people
    text: str
    code: str  # the service's error code


class IdentifiersField(forms.Field):
    """Policies as JSON in a hidden field."""

    widget = forms.HiddenInput

    def prepare_value(self, value: Any) -> str:
        # a form that was sent without the field has None
        return value if isinstance(value, str) else write_identifiers(value or ())

    def to_python(self, value: str | None) -> tuple[SignedIdentifier, ...]:
        return read_identifiers(value or "[]")


class ZoneField(forms.CharField):
    widget = forms.HiddenInput

    def clean(self, value: str | None) -> str:
        """Return a valid time zone name; "" for any other text."""
        try:
            return ZoneInfo(value or "").key
        except (ValueError, OSError, ZoneInfoNotFoundError):
            return ""


class SetForm(forms.Form):
    """Form for the stored set of policies and the time zone in which its times are shown."""

    seen = IdentifiersField(required=False)
    zone = ZoneField(required=False)


class NotedField(forms.BoundField):
    """Bound field with a note below that explains its value."""

    @property
    def aria_describedby(self) -> str:
        return " ".join(filter(None, [f"{self.html_name}-note", super().aria_describedby]))


class TextField(forms.CharField):
    bound_field_class = NotedField

    def __init__(self, label: Any, placeholder: Any = "") -> None:
        attributes = {**MONO, "placeholder": placeholder} if placeholder else MONO
        super().__init__(label=label, required=False, strip=False, widget=forms.TextInput(attrs=attributes))


class PermissionBoxes(forms.CheckboxSelectMultiple):
    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        option["attrs"]["aria-describedby"] = f"allows-{value}"
        return option


class PolicyForm(forms.Form):
    basis = IdentifiersField(required=False)
    identifier = TextField(gettext_lazy("Id"))
    permissions = forms.MultipleChoiceField(
        label=gettext_lazy("Permissions"), choices=LETTERS.items(), required=False, widget=PermissionBoxes
    )
    start = TextField(gettext_lazy("Start"), gettext_lazy("set by each token"))
    expiry = TextField(gettext_lazy("Expiry"), gettext_lazy("set by each token"))

    def draft(self) -> PolicyDraft:
        """Return the entered draft, valid or not."""
        self.is_valid()
        values = self.cleaned_data
        return PolicyDraft(
            next(iter(values["basis"]), NEW),
            values.get("identifier", ""),
            frozenset(values.get("permissions", ())),
            values.get("start", "").strip(),
            values.get("expiry", "").strip(),
        )


def initial_of(row: PolicyDraft) -> dict[str, Any]:
    return {
        "basis": [row.basis],
        "identifier": row.identifier,
        "permissions": [letter for letter in PERMISSIONS if letter in row.permissions],
        "start": row.start,
        "expiry": row.expiry,
    }


class BasePolicyFormSet(forms.BaseFormSet):  # type: ignore[type-arg]
    """Formset of policies, bound to ``data`` or unbound to show a draft."""

    def __init__(self, data: QueryDict | None = None, *, draft: SetDraft | None = None, zone: str = "UTC"):
        draft = draft or SetDraft((), (), zone)
        self.zone = draft.zone
        self.set_form = SetForm(data, initial={"seen": draft.seen, "zone": draft.zone})
        if data is None:
            self.__dict__["draft"] = draft
        super().__init__(data, prefix=PREFIX, initial=[initial_of(row) for row in draft.rows])

    @cached_property
    def draft(self) -> SetDraft:
        self.set_form.full_clean()
        state = self.set_form.cleaned_data
        rows = tuple(form.draft() for form in self.forms)
        return SetDraft(state["seen"], rows, state["zone"] or self.zone)

    @cached_property
    def now(self) -> datetime:
        return self.draft.now()

    @cached_property
    def identifiers(self) -> list[SignedIdentifier]:
        return self.draft.read(self.now)

    def get_form_kwargs(self, index: int | None) -> dict[str, Any]:
        return {"empty_permitted": False}

    def clean(self) -> None:
        faults = list(find_faults(self.identifiers))
        for fault in faults:
            if fault.place is not None:
                self._add_fault(fault, fault.place)
        if any(fault.place is None for fault in faults):
            raise _error_of(PolicyFault(PolicyRule.NUMBER))

    def _add_fault(self, fault: PolicyFault, place: int) -> None:
        name = _FIELDS[fault.rule]
        is_missing = fault.rule is PolicyRule.UNIQUE and not self.draft.rows[place].identifier
        # each field shows its first fault only; a missing Id is a fault of its own
        if not is_missing and name not in self.forms[place].errors:
            self.forms[place].add_error(name, _error_of(fault))

    @property
    def problems(self) -> list[FieldError]:
        """Return the errors of all fields, in form order."""
        errors = [("id_policies", _("Policies"), error) for error in self.non_form_errors().as_data()]
        for number, form in enumerate(self.forms, 1):
            policy = _("Policy %(number)s") % {"number": number}
            errors += [
                (form[name].auto_id, policy, error)
                for name, of_field in form.errors.as_data().items()
                for error in of_field
            ]
        return [
            FieldError(id_, policy, text, error.code or "")
            for id_, policy, error in errors
            for text in error.messages
        ]


def _error_of(fault: PolicyFault) -> forms.ValidationError:
    return forms.ValidationError(describe_rule(fault.rule), code=fault.error.code)


PolicyFormSet: Final = cast(
    "type[BasePolicyFormSet]",
    forms.formset_factory(
        PolicyForm, formset=BasePolicyFormSet, extra=0, max_num=MOST_FORMS, absolute_max=MOST_FORMS
    ),
)


def write_data(draft: SetDraft) -> QueryDict:
    """Serialize a draft as a browser would send its form."""
    data = QueryDict(mutable=True)
    data["seen"], data["zone"] = write_identifiers(draft.seen), draft.zone
    data[f"{PREFIX}-TOTAL_FORMS"] = data[f"{PREFIX}-INITIAL_FORMS"] = str(len(draft.rows))
    for place, row in enumerate(draft.rows):
        for name, value in initial_of(row).items():
            values = [write_identifiers(value)] if name == "basis" else value
            data.setlist(f"{PREFIX}-{place}-{name}", values if isinstance(values, list) else [values])
    return data

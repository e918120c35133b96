"""Forms for the service properties; the rules for their values are those of the service."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final, Self

from django import forms
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.forms.cors import FORM_LIMIT, CorsRuleFormSet, RulesChange, RuleValues, rule_values
from console.accounts.forms.fields import NOT_A_NUMBER, NumberField, violation
from storage.domain.errors import InvalidXmlDocument, InvalidXmlNodeValue
from storage.domain.service_properties.properties import (
    RETENTION_DAYS,
    Logging,
    Metrics,
    ServiceProperties,
)

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as LazyText


class _RetentionForm(forms.Form):
    retention = NumberField(label=gettext_lazy("Delete after"), empty=None, placeholder=gettext_lazy("never"))

    def clean_retention(self) -> int | None:
        days: int | None = self.cleaned_data["retention"]
        if days == NOT_A_NUMBER:
            raise violation("retention", InvalidXmlNodeValue())
        if days is not None and days not in RETENTION_DAYS:
            raise violation("retention", InvalidXmlDocument())
        return days


class LoggingForm(_RetentionForm):
    read = forms.BooleanField(label=gettext_lazy("Reads"), required=False)
    write = forms.BooleanField(label=gettext_lazy("Writes"), required=False)
    delete = forms.BooleanField(label=gettext_lazy("Deletes"), required=False)

    def part(self) -> Logging:
        return Logging(**self.cleaned_data)


class MetricsForm(_RetentionForm):
    enabled = forms.BooleanField(label=gettext_lazy("Enabled"), required=False)
    include_apis = forms.BooleanField(label=gettext_lazy("Include per-operation metrics"), required=False)

    def part(self) -> Metrics:
        data = self.cleaned_data
        return Metrics(**{**data, "include_apis": data["enabled"] and data["include_apis"]})


PARTS: Final["Mapping[str, tuple[type[_RetentionForm], LazyText]]"] = {
    "logging": (LoggingForm, gettext_lazy("Request logs")),
    "hour_metrics": (MetricsForm, gettext_lazy("Hour metrics")),
    "minute_metrics": (MetricsForm, gettext_lazy("Minute metrics")),
}


class ServiceForms:
    """Forms of the editor, with the version of the properties from which the user started."""

    def __init__(
        self,
        version: str,
        data: MultiValueDict[str, Any] | None = None,
        rules: Sequence[RuleValues] = (),
        parts: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self.version = version
        self.cors: Any = CorsRuleFormSet(data, initial=rules, prefix="cors")
        initial = parts or {}
        self.parts: dict[str, Any] = {
            name: form(data, initial=initial.get(name), prefix=name) for name, (form, _label) in PARTS.items()
        }

    @classmethod
    def from_post(cls, data: QueryDict) -> Self:
        return cls(data.get("version", ""), data)

    @classmethod
    def from_properties(cls, properties: ServiceProperties, version: str) -> Self:
        return cls(
            version,
            rules=[rule_values(rule) for rule in properties.cors],
            parts={name: asdict(getattr(properties, name)) for name in PARTS},
        )

    def with_rules(self, change: RulesChange) -> Self:
        """Return unbound forms with the same values but changed rules."""
        parts = {name: _values(form) for name, form in self.parts.items()}
        rules = change([_values(form) for form in self.cors])
        return type(self)(self.version, rules=rules[:FORM_LIMIT], parts=parts)

    def focus_last(self) -> Self:
        """Focus the first field of the last rule."""
        for form in self.cors.forms[-1:]:
            form.fields["origins"].widget.attrs["autofocus"] = True
        return self

    def bound(self) -> Self:
        """Return bound forms with the same values, for validation."""
        data: MultiValueDict[str, Any] = MultiValueDict()
        for form in (self.cors.management_form, *self.cors, *self.parts.values()):
            for field in form:
                value = field.value()
                if isinstance(value, list | tuple):
                    data.setlist(field.html_name, list(value))
                elif value is not None and value is not False:
                    data[field.html_name] = str(value)
        return type(self)(self.version, data)

    def is_valid(self) -> bool:
        return not self.errors

    def properties(self, stored: ServiceProperties) -> ServiceProperties:
        """Return the properties of valid forms; unchanged methods keep their stored order."""
        orders = {(rule.origins, frozenset(rule.methods)): rule.methods for rule in stored.cors}
        rules = tuple(
            replace(rule, methods=orders.get((rule.origins, frozenset(rule.methods)), rule.methods))
            for rule in self.cors.rules
        )
        return ServiceProperties(**{name: form.part() for name, form in self.parts.items()}, cors=rules)

    @property
    def errors(self) -> list[tuple[str, str, str]]:
        """Return the errors, each with field id, section of the page and message."""
        if not self.cors.is_bound:
            return []
        groups = [(form, str(PARTS[name][1])) for name, form in self.parts.items()]
        groups += [
            (form, _("Rule %(number)s") % {"number": number})
            for number, form in enumerate(self.cors, start=1)
        ]
        all_errors = [("id_cors", _("CORS rules"), error) for error in self.cors.non_form_errors()]
        for form, label in groups:
            all_errors += [
                (form[name].auto_id, label, error) for name, errors in form.errors.items() for error in errors
            ]
        return all_errors


def _values(form: forms.Form) -> dict[str, Any]:
    return {name: form[name].value() for name in form.fields}

"""Forms for the service properties; the rules for their values are those of the service."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, Self

from django import forms
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from storage.domain.errors import InvalidXmlDocument, InvalidXmlNodeValue, StorageError
from storage.domain.service.service_properties import (
    CORS_METHODS,
    CORS_RULE_LIMIT,
    CORS_SIZE_LIMIT,
    HEADER_LIMIT,
    MAX_AGE,
    ORIGIN_LIMIT,
    PREFIX_LIMIT,
    RETENTION_DAYS,
    CorsRule,
    Logging,
    Metrics,
    ServiceProperties,
    cors_size,
    find_faults,
)

RuleValues = dict[str, Any]  # of the fields of a CorsRuleForm
RulesChange = Callable[[list[RuleValues]], list[RuleValues]]

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "MERGE", "DELETE", "OPTIONS")
assert set(METHODS) == CORS_METHODS
FORM_LIMIT: Final = 12  # rules in a form; more than can be saved, so that the form can say so

_NUMBER = re.compile(r"[0-9]{1,10}")
_NOT_A_NUMBER: Final = -1  # out of every range

RULES: Final[Mapping[str, Promise]] = {
    "origins": gettext_lazy(
        "Enter 1 to %(origins)s origins such as https://example.org, without a path. * allows every origin."
    ),
    "methods": gettext_lazy("Select at least one method."),
    "allowed_headers": gettext_lazy("Enter at most %(headers)s header names and %(prefixes)s that end in *."),
    "exposed_headers": gettext_lazy("Enter at most %(headers)s header names and %(prefixes)s that end in *."),
    "max_age": gettext_lazy("Enter a whole number of seconds, at most %(seconds)s."),
    "retention": gettext_lazy(
        "Enter %(least)s to %(most)s days, or leave the field empty to keep everything."
    ),
    "count": gettext_lazy("You can have at most %(rules)s rules."),
    "size": gettext_lazy("The rules take %(size)s bytes. The limit is %(bytes)s bytes."),
}
LIMITS: Final = {
    "origins": ORIGIN_LIMIT,
    "headers": HEADER_LIMIT,
    "prefixes": PREFIX_LIMIT,
    "seconds": MAX_AGE[-1],
    "least": RETENTION_DAYS[0],
    "most": RETENTION_DAYS[-1],
    "rules": CORS_RULE_LIMIT,
    "bytes": CORS_SIZE_LIMIT,
}


def _violation(rule: str, error: StorageError, **values: int) -> forms.ValidationError:
    """Describe a violated rule, with the code and the text that the service sends its clients."""
    params = {**LIMITS, **values, "service_text": error.text}
    return forms.ValidationError(RULES[rule], code=error.code, params=params)


class _ListField(forms.CharField):
    """Texts separated by commas."""

    def __init__(self, *, label: str | Promise, placeholder: str) -> None:
        attrs = {
            "class": "mono", "placeholder": placeholder, "autocomplete": "off", "autocapitalize": "none",
            "spellcheck": "false", "data-chips": r"[\s,]+", "data-remove": gettext_lazy("Remove {}"),
        }  # fmt: skip
        super().__init__(label=label, required=False, widget=forms.TextInput(attrs))

    def clean(self, value: Any) -> tuple[str, ...]:
        return tuple(part for part in map(str.strip, super().clean(value).split(",")) if part)


class _NumberField(forms.CharField):
    """A number as the service checks it: a text that is none becomes a number out of every range."""

    def __init__(self, *, label: str | Promise, empty: int | None, placeholder: str | Promise = "") -> None:
        attrs = {
            "class": "mono", "inputmode": "numeric", "maxlength": "12", "autocomplete": "off",
            "placeholder": placeholder,
        }  # fmt: skip
        super().__init__(label=label, required=False, widget=forms.TextInput(attrs))
        self._empty = empty

    def clean(self, value: Any) -> int | None:
        text = super().clean(value)
        if not text:
            return self._empty
        return int(text) if _NUMBER.fullmatch(text) else _NOT_A_NUMBER


class CorsRuleForm(forms.Form):
    origins = _ListField(label=gettext_lazy("Allowed origins"), placeholder="https://example.org, *")
    methods = forms.MultipleChoiceField(
        label=gettext_lazy("Allowed methods"),
        choices=[(method, method) for method in METHODS],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    allowed_headers = _ListField(label=gettext_lazy("Allowed headers"), placeholder="content-type, x-ms-*")
    exposed_headers = _ListField(label=gettext_lazy("Exposed headers"), placeholder="x-ms-*")
    max_age = _NumberField(label=gettext_lazy("Max age"), empty=_NOT_A_NUMBER)

    @property
    def rule(self) -> CorsRule:
        """The rule as it was typed, whether it is valid or not."""
        methods = self["methods"].value() or ()
        return CorsRule(
            self._read("origins"),
            tuple(method for method in METHODS if method in methods),
            self._read("allowed_headers"),
            self._read("exposed_headers"),
            self._read("max_age"),
        )

    def _read(self, name: str) -> Any:
        return self.fields[name].clean(self[name].value())

    def clean(self) -> None:
        for fault in find_faults(ServiceProperties(cors=(self.rule,))):
            match fault.where:
                case ("cors", 0, str(name)):
                    self.add_error(name, _violation(name, fault.error))


class _CorsRuleFormSet(forms.BaseFormSet):  # type: ignore[type-arg]
    def initial_form_count(self) -> int:
        # otherwise Django would ignore a blank rule
        return self.total_form_count() if self.is_bound else super().initial_form_count()

    def clean(self) -> None:
        if len(self.forms) > CORS_RULE_LIMIT:
            raise _violation("count", InvalidXmlDocument())
        if self.size > CORS_SIZE_LIMIT:
            raise _violation("size", InvalidXmlDocument(), size=self.size)

    @property
    def rules(self) -> tuple[CorsRule, ...]:
        return tuple(form.rule for form in self.forms)

    @property
    def size(self) -> int:
        return cors_size(self.rules)


CorsRuleFormSet = forms.formset_factory(
    CorsRuleForm, formset=_CorsRuleFormSet, extra=0, max_num=FORM_LIMIT, absolute_max=FORM_LIMIT
)


class _RetentionForm(forms.Form):
    retention = _NumberField(
        label=gettext_lazy("Delete after"), empty=None, placeholder=gettext_lazy("never")
    )

    def clean_retention(self) -> int | None:
        days: int | None = self.cleaned_data["retention"]
        if days == _NOT_A_NUMBER:
            raise _violation("retention", InvalidXmlNodeValue())
        if days is not None and days not in RETENTION_DAYS:
            raise _violation("retention", InvalidXmlDocument())
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


PARTS: Final[Mapping[str, tuple[type[_RetentionForm], Promise]]] = {
    "logging": (LoggingForm, gettext_lazy("Request logs")),
    "hour_metrics": (MetricsForm, gettext_lazy("Hour metrics")),
    "minute_metrics": (MetricsForm, gettext_lazy("Minute metrics")),
}


class ServiceForms:
    """All forms of the editor, and the version of the properties that the user started with."""

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
            rules=[_rule_values(rule) for rule in properties.cors],
            parts={name: asdict(getattr(properties, name)) for name in PARTS},
        )

    def with_rules(self, change: RulesChange) -> Self:
        """Return unbound forms with the same values but changed rules."""
        parts = {name: _values(form) for name, form in self.parts.items()}
        rules = change([_values(form) for form in self.cors])
        return type(self)(self.version, rules=rules[:FORM_LIMIT], parts=parts)

    def focus_last(self) -> Self:
        """Have the browser focus the first field of the last rule."""
        for form in self.cors.forms[-1:]:
            form.fields["origins"].widget.attrs["autofocus"] = True
        return self

    def bound(self) -> Self:
        """Return forms that validate the values of these."""
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
        """Return the properties of valid forms; methods keep the order in which they are stored."""
        orders = {(rule.origins, frozenset(rule.methods)): rule.methods for rule in stored.cors}
        rules = tuple(
            replace(rule, methods=orders.get((rule.origins, frozenset(rule.methods)), rule.methods))
            for rule in self.cors.rules
        )
        return ServiceProperties(**{name: form.part() for name, form in self.parts.items()}, cors=rules)

    @property
    def errors(self) -> list[tuple[str, str, str]]:
        """What is wrong: the id of the field, the part of the page it is in, and the error."""
        if not self.cors.is_bound:
            return []
        groups = [(form, str(PARTS[name][1])) for name, form in self.parts.items()]
        groups += [
            (form, _("Rule %(number)s") % {"number": number})
            for number, form in enumerate(self.cors, start=1)
        ]
        found = [("id_cors", _("CORS rules"), error) for error in self.cors.non_form_errors()]
        for form, label in groups:
            found += [
                (form[name].auto_id, label, error) for name, errors in form.errors.items() for error in errors
            ]
        return found


def _values(form: forms.Form) -> dict[str, Any]:
    return {name: form[name].value() for name in form.fields}


def _rule_values(rule: CorsRule) -> dict[str, Any]:
    return {
        "origins": ", ".join(rule.origins),
        "methods": list(rule.methods),
        "allowed_headers": ", ".join(rule.allowed_headers),
        "exposed_headers": ", ".join(rule.exposed_headers),
        "max_age": str(rule.max_age),
    }


# rules to start from
TEMPLATES: Final[Mapping[str, CorsRule]] = {
    "blank": CorsRule((), (), (), (), 3600),
    "localhost": CorsRule(
        ("http://localhost:3000", "http://localhost:5173", "http://localhost:8080"),
        METHODS,
        ("*",),
        ("*",),
        60,
    ),
    "origin": CorsRule(
        ("https://app.example.org",),
        ("GET", "POST", "OPTIONS"),
        ("content-type", "accept", "x-ms-*"),
        ("x-ms-*",),
        3600,
    ),
}


def add_rule(template: str) -> RulesChange:
    """Append a template's rule; nothing if there is no such template."""
    added = [_rule_values(TEMPLATES[template])] if template in TEMPLATES else []
    return lambda rules: [*rules, *added]


def remove_rule(index: int) -> RulesChange:
    return lambda rules: [rule for place, rule in enumerate(rules) if place != index]


def move_rule(index: int, by: int) -> RulesChange:
    """Move a rule towards the end by 1 or towards the start by -1, unless it is there already."""

    def move(rules: list[RuleValues]) -> list[RuleValues]:
        if not (0 <= index < len(rules) and 0 <= index + by < len(rules)):
            return rules
        rules[index], rules[index + by] = rules[index + by], rules[index]
        return rules

    return move

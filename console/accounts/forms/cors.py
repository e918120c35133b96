"""CORS rules of an account as a formset."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy

from console.accounts.forms.fields import NOT_A_NUMBER, ListField, NumberField, violation
from storage.domain.errors import InvalidXmlDocument
from storage.domain.service_properties.properties import (
    CORS_METHODS,
    CORS_RULE_LIMIT,
    CORS_SIZE_LIMIT,
    CorsRule,
    ServiceProperties,
    cors_size,
    find_faults,
)

RuleValues = dict[str, Any]  # values of the fields of a CorsRuleForm
RulesChange = Callable[[list[RuleValues]], list[RuleValues]]

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "MERGE", "DELETE", "OPTIONS", "TRACE", "CONNECT")
assert set(METHODS) == CORS_METHODS
FORM_LIMIT: Final = 12  # rules in a form; more than can be saved, so that the form can say so


class CorsRuleForm(forms.Form):
    origins = ListField(label=gettext_lazy("Allowed origins"), placeholder="https://example.org, *")
    methods = forms.MultipleChoiceField(
        label=gettext_lazy("Allowed methods"),
        choices=[(method, method) for method in METHODS],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    allowed_headers = ListField(label=gettext_lazy("Allowed headers"), placeholder="content-type, x-ms-*")
    exposed_headers = ListField(label=gettext_lazy("Exposed headers"), placeholder="x-ms-*")
    max_age = NumberField(label=gettext_lazy("Max age"), empty=NOT_A_NUMBER)

    @property
    def rule(self) -> CorsRule:
        """Return the rule as typed, valid or not."""
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
                    self.add_error(name, violation(name, fault.error))


class _CorsRuleFormSet(forms.BaseFormSet):  # type: ignore[type-arg]
    def initial_form_count(self) -> int:
        # otherwise Django would ignore a blank rule
        return self.total_form_count() if self.is_bound else super().initial_form_count()

    def clean(self) -> None:
        if len(self.forms) > CORS_RULE_LIMIT:
            raise violation("count", InvalidXmlDocument())
        if self.size > CORS_SIZE_LIMIT:
            raise violation("size", InvalidXmlDocument(), size=self.size)

    @property
    def rules(self) -> tuple[CorsRule, ...]:
        return tuple(form.rule for form in self.forms)

    @property
    def size(self) -> int:
        return cors_size(self.rules)


CorsRuleFormSet = forms.formset_factory(
    CorsRuleForm, formset=_CorsRuleFormSet, extra=0, max_num=FORM_LIMIT, absolute_max=FORM_LIMIT
)


def rule_values(rule: CorsRule) -> dict[str, Any]:
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
    """Return a change that appends a template's rule, or does nothing for an unknown template."""
    added = [rule_values(TEMPLATES[template])] if template in TEMPLATES else []
    return lambda rules: [*rules, *added]


def remove_rule(index: int) -> RulesChange:
    return lambda rules: [rule for place, rule in enumerate(rules) if place != index]


def move_rule(index: int, by: int) -> RulesChange:
    """Return a change that moves a rule by +1 or -1, unless it is at the end or start already."""

    def move(rules: list[RuleValues]) -> list[RuleValues]:
        if not (0 <= index < len(rules) and 0 <= index + by < len(rules)):
            return rules
        rules[index], rules[index + by] = rules[index + by], rules[index]
        return rules

    return move

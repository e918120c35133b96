"""Fields and messages shared by forms of the service properties."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext_lazy

from storage.domain.errors import StorageError
from storage.domain.service_properties.properties import (
    CORS_RULE_LIMIT,
    CORS_SIZE_LIMIT,
    HEADER_LIMIT,
    MAX_AGE,
    ORIGIN_LIMIT,
    PREFIX_LIMIT,
    RETENTION_DAYS,
)

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as LazyText

_NUMBER = re.compile(r"[0-9]{1,10}")
NOT_A_NUMBER: Final = -1  # out of every range

RULES: Final["Mapping[str, LazyText]"] = {
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


def violation(rule: str, error: StorageError, **values: int) -> forms.ValidationError:
    """Describe a violated rule, with the service's error code and message."""
    params = {**LIMITS, **values, "service_text": error.text}
    return forms.ValidationError(RULES[rule], code=error.code, params=params)


class ListField(forms.CharField):
    """Field for comma-separated texts."""

    def __init__(self, *, label: "LazyText", placeholder: str) -> None:
        attrs = {
            "class": "mono", "placeholder": placeholder, "autocomplete": "off", "autocapitalize": "none",
            "spellcheck": "false", "data-chips": r"[\s,]+", "data-remove": gettext_lazy("Remove {}"),
        }  # fmt: skip
        super().__init__(label=label, required=False, widget=forms.TextInput(attrs))

    def clean(self, value: Any) -> tuple[str, ...]:
        return tuple(part for part in map(str.strip, super().clean(value).split(",")) if part)


class NumberField(forms.CharField):
    """Number with the service's validation; a non-numeric text becomes a number outside every range."""

    def __init__(self, *, label: "LazyText", empty: int | None, placeholder: "LazyText | str" = "") -> None:
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
        return int(text) if _NUMBER.fullmatch(text) else NOT_A_NUMBER

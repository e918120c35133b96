"""Why a filter is invalid, in the language of the reader; clients get the service's own message instead."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.refusals import describe_refusal
from console.site.tags import grouped
from storage.domain.errors import StorageError
from storage.domain.filters.parser import CONSOLE_LIMIT, DEPTH_LIMIT, Dialect, parse
from storage.editing.filters.quick_fixes import diagnose
from storage.editing.filters.suggestions import FilterFault, Finding

SENTENCES: Final[Mapping[FilterFault, Promise]] = {
    FilterFault.TOO_LONG: gettext_lazy("A filter can have at most %(most)s characters."),
    FilterFault.TOO_DEEP: gettext_lazy("Parentheses and not can be nested at most %(deepest)s levels deep."),
    FilterFault.OPERATOR: gettext_lazy("Unknown operator “%(name)s”. Use eq, ne, gt, ge, lt or le."),
    FilterFault.SIGN: gettext_lazy(
        "Filters have operators of their own: eq, ne, gt, ge, lt, le, and, or, not."
    ),
    FilterFault.UNSUPPORTED: gettext_lazy("%(name)s isn't supported in filters."),
    FilterFault.NULL: gettext_lazy("Properties cannot be compared with null. Use isset()."),
    FilterFault.QUOTES: gettext_lazy("Write strings in single quotes."),
    FilterFault.OPEN_STRING: gettext_lazy("The string has no closing quote."),
    FilterFault.OPEN_GROUP: gettext_lazy("A closing parenthesis is missing."),
    FilterFault.NOT_OPENED: gettext_lazy("Syntax error: this parenthesis has no opening one."),
    FilterFault.PREFIX: gettext_lazy("Write a %(type)s as %(instead)s."),
    FilterFault.LETTER_CASE: gettext_lazy("Write %(instead)s in lowercase."),
    FilterFault.LITERAL: gettext_lazy("%(name)s is not a valid %(type)s."),
    FilterFault.CHARACTER: gettext_lazy("The character “%(name)s” is not allowed here."),
    FilterFault.OPERANDS: gettext_lazy("Compare a property with a value, not two properties or two values."),
    FilterFault.CONDITION: gettext_lazy("%(name)s is not a condition. Compare a property with it."),
    FilterFault.INCOMPLETE: gettext_lazy(
        "Syntax error: the filter ends where a property or value is expected."
    ),
    FilterFault.UNEXPECTED: gettext_lazy(
        "Syntax error: “%(name)s” is not expected here. Join conditions with and or or."
    ),
}


def describe_fault(found: Finding) -> str:
    """Return the sentence of a text that is not a filter."""
    assert found.fault is not None
    facts = {
        "name": found.name,
        "instead": found.instead,
        "type": found.asked.short_name if found.asked else "",
        "most": grouped(CONSOLE_LIMIT),
        "deepest": DEPTH_LIMIT,
    }
    if found.fault is FilterFault.OPERATOR and found.instead:
        return _("Unknown operator “%(name)s”. Did you mean %(instead)s?") % facts
    return str(SENTENCES[found.fault]) % facts


def describe_query_error(text: str, error: StorageError, now: datetime | None = None) -> str:
    """Return why a query was refused: what is wrong with its filter ``text``, or else the refusal of the operation."""
    now = now or timezone.now()
    try:
        parse(text, Dialect.CONSOLE, now)
    except StorageError as invalid:
        return describe_fault(diagnose(text, invalid, now))
    return describe_refusal(error)

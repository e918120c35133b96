"""Shared form helpers."""

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.forms import BaseForm
from django.forms.renderers import TemplatesSetting
from django.utils.functional import Promise

# attributes of fields for names and code, which no browser may complete, capitalize or correct
VERBATIM: Final = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
MONO: Final = {"class": "mono", **VERBATIM}


class FormRenderer(TemplatesSetting):
    form_template_name = "components/form.html"
    field_template_name = "components/field.html"


class MomentInput(forms.DateTimeInput):
    """Text field for a local date and time, with the browser's picker."""

    template_name = "components/moment_widget.html"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%d %H:%M")


@dataclass(frozen=True, slots=True)
class NameRule:
    """A rule for a new name, shown while it is typed."""

    text: str | Promise
    is_kept: bool | None  # None while there is no name to check


def include_initial_values(form: BaseForm) -> None:
    """Render initial values as hidden fields, for `changed_values`."""
    for field in form.fields.values():
        field.show_hidden_initial = True


def is_untouched(form: BaseForm) -> bool:
    """Return whether no field of a form was changed."""
    return not form.has_changed() and all(form[name].html_initial_name in form.data for name in form.fields)


def changed_values(form: BaseForm) -> dict[str, Any]:
    """Return the changed values, so that saving does not overwrite newer changes of others."""
    changed = set(form.changed_data)
    sent = {name for name in form.fields if form[name].html_initial_name in form.data}
    return {name: value for name, value in form.cleaned_data.items() if name in changed or name not in sent}

"""Shared form helpers."""

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.forms import BaseForm, BoundField
from django.forms.renderers import TemplatesSetting
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.text import Truncator
from django.utils.translation import gettext as _

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
    """Render initial values as hidden fields, for `changed_values` and `report_conflicts`."""
    for field in form.fields.values():
        field.show_hidden_initial = True


def is_untouched(form: BaseForm) -> bool:
    """Return whether no field of a form was changed."""
    return not form.has_changed() and all(form[name].html_initial_name in form.data for name in form.fields)


def changed_values(form: BaseForm) -> dict[str, Any]:
    """Return the changed values, so that saving does not overwrite newer changes of others."""
    changed = set(form.changed_data)
    sent = {name for name in form.fields if form[name].html_initial_name in form.data}
    if sent:  # a list that was empty sends nothing
        sent |= {name for name, field in form.fields.items() if isinstance(field, forms.MultipleChoiceField)}
    return {name: value for name, value in form.cleaned_data.items() if name in changed or name not in sent}


def report_conflicts(form: BaseForm) -> bool:
    """Add an error to each field that two users have changed differently; return whether there are any.

    The initial values of the form are the current ones. Saving the form again replaces the other change.
    """
    data = QueryDict(mutable=True)
    data.update(form.data)
    conflicts = [form[name] for name in form.changed_data if _is_in_conflict(form[name], data)]
    for field in conflicts:
        current = _texts_of_initial(field)
        data.setlist(field.html_initial_name, current)
        labels = dict(getattr(field.field, "choices", ()))
        shown = Truncator(", ".join(str(labels.get(text, text)) for text in current)).chars(200)
        text = (
            _("Changed in the meantime to “%(value)s”. Save again to replace that.") % {"value": shown}
            if shown
            else _("Emptied in the meantime. Save again to replace that.")
        )
        form.add_error(field.name, text)
    form.data = data
    return bool(conflicts)


def _is_in_conflict(field: BoundField, data: QueryDict) -> bool:
    seen, current = (
        [text.replace("\r\n", "\n") for text in texts]
        for texts in (data.getlist(field.html_initial_name), _texts_of_initial(field))
    )
    is_list = isinstance(field.field, forms.MultipleChoiceField)
    if seen == current or not (seen or is_list):
        return False
    return bool(field.field.has_changed(field.initial, field.data))


def _texts_of_initial(field: BoundField) -> list[str]:
    """Return the initial value as its hidden fields have it: one, but for a list as many as it has items."""
    value = field.field.hidden_widget().format_value(field.field.prepare_value(field.initial))
    if isinstance(field.field, forms.MultipleChoiceField):
        return list(value)
    return ["" if value is None else str(value)]

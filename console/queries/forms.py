"""Forms of saved queries: the query itself, and the values of its parameters."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from django import forms
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.forms import MONO
from console.site.refusals import describe_refusal
from storage.domain.errors import StorageError
from storage.editing.filters import parameters
from storage.editing.filters.diagnosis import parse_filter
from storage.editing.filters.parameters import UnfilledParameter

_FILTER_LENGTH: Final = 32_000  # characters
_SUGGESTIONS: Final = 12  # values that can become parameters


class ParameterChoiceField(forms.MultipleChoiceField):
    def valid_value(self, value: str) -> bool:
        return True  # names that the filter no longer suggests are ignored


class SavedQueryForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=64,
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"}),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "dir": "auto"}),
    )
    filter = forms.CharField(
        label=gettext_lazy("Filter"),
        max_length=_FILTER_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={**MONO, "rows": 3, "dir": "ltr"}),
        help_text=gettext_lazy(
            "Write a name in double braces to enter its value at each run, e.g. PartitionKey eq '{{tenant}}'."
            " Relative times such as datetime'{{now-24h}}' are calculated at each run."
        ),
    )
    ask = ParameterChoiceField(
        label=gettext_lazy("Ask for these values at each run"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    keeps_view = forms.BooleanField(
        label=gettext_lazy("Include the current columns, sort order, page size and view"), required=False
    )
    is_shared = forms.BooleanField(
        label=gettext_lazy("Share with everyone in this account"),
        required=False,
        help_text=gettext_lazy("Editors can then change or delete it. Otherwise it's visible only to you."),
    )

    def __init__(self, *args: Any, taken: Collection[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._taken = {name.casefold() for name in taken}
        self._suggestions = parameters.suggest_parameters(str(self["filter"].value() or ""))[:_SUGGESTIONS]
        self.fields["ask"].choices = [  # type: ignore[attr-defined]
            (it.name, format_html("{} <b>{}</b>", it.compared, Truncator(it.literal).chars(40)))
            for it in self._suggestions
        ]

    @property
    def parameter_values(self) -> dict[str, str]:
        """Return the literals that became parameters."""
        return {it.name: it.value for it in self._suggestions if it.name in self.cleaned_data["ask"]}

    def clean_name(self) -> str:
        name = " ".join(str(self.cleaned_data["name"]).split())
        if name.casefold() in self._taken:
            raise forms.ValidationError(_("This table already has a query with this name."))
        return name

    def clean_filter(self) -> str:
        text = str(self.cleaned_data["filter"]).replace("\r\n", "\n").strip()
        if text:
            _check_filter(text)
        return text

    def clean(self) -> dict[str, Any]:
        if "filter" in self.cleaned_data:
            asked = self.cleaned_data.get("ask", ())
            self.cleaned_data["filter"] = parameters.add_parameters(self.cleaned_data["filter"], asked)
        return self.cleaned_data


def _check_filter(text: str) -> None:
    for sample in parameters.fill_samples(text):
        try:
            parse_filter(sample, timezone.now())
        except StorageError as error:
            fault = describe_refusal(error)
        else:
            return
    raise forms.ValidationError(fault)


class ParameterValuesForm(forms.Form):
    """Form with a field ``v-NAME`` per parameter of a filter; valid when the filter can be filled."""

    use_required_attribute = False  # an empty text is a value too

    def __init__(self, text: str, names: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._text = text
        self._names = names
        for name in names:
            widget = forms.TextInput(attrs=MONO)
            field = forms.CharField(label=name, strip=False, widget=widget)
            field.empty_values = []
            self.fields[field_name(name)] = field
        self._focus(next(iter(names), ""))

    @property
    def values(self) -> dict[str, str]:
        return {name: self.cleaned_data.get(field_name(name), "") for name in self._names}

    def _focus(self, wanted: str) -> None:
        for name in self._names:
            self.fields[field_name(name)].widget.attrs["autofocus"] = name == wanted

    def clean(self) -> dict[str, Any]:
        try:
            parameters.fill_parameters(self._text, self.values)
        except UnfilledParameter as error:
            self.add_error(field_name(error.name), describe_refusal(error))
            self._focus(error.name)
        return self.cleaned_data


def field_name(parameter: str) -> str:
    return f"v-{parameter}"

"""A query that is saved, and the values that one asks for."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.grid.state import GridState
from storage.domain.errors import StorageError
from storage.editing.filters import parameters
from storage.editing.filters.parameters import ParameterFault, ParameterSuggestion, UnfilledParameter

_PLAIN: Final = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
_LONGEST: Final = 32_000  # characters of a filter
_MOST: Final = 12  # values that are offered to be asked for


class QueryForm(forms.Form):
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
        max_length=_LONGEST,
        required=False,
        widget=forms.Textarea(attrs={"class": "mono", "rows": 3, "dir": "ltr", **_PLAIN}),
        help_text=gettext_lazy(
            "Write a name in double braces to enter its value at each run, e.g. PartitionKey eq '{{tenant}}'."
            " Relative times such as datetime'{{now-24h}}' are calculated at each run."
        ),
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

    @property
    def offers(self) -> list[tuple[ParameterSuggestion, bool]]:
        """The values that may be asked for instead, and whether they were chosen."""
        chosen = set(self._asked)
        found = parameters.suggest_parameters(str(self["filter"].value() or ""))
        return [(offer, offer.name in chosen) for offer in found[:_MOST]]

    @property
    def given(self) -> dict[str, str]:
        """The values that stood where they are asked for by now."""
        return {offer.name: offer.value for offer, is_chosen in self.offers if is_chosen}

    @property
    def _asked(self) -> list[str]:
        return self.data.getlist("ask") if isinstance(self.data, QueryDict) else []

    def clean_name(self) -> str:
        name = " ".join(str(self.cleaned_data["name"]).split())
        if name.casefold() in self._taken:
            raise forms.ValidationError(_("This table already has a query with this name."))
        return name

    def clean_filter(self) -> str:
        text = str(self.cleaned_data["filter"]).replace("\r\n", "\n").strip()
        if text and not parameters.list_parameters(text):
            self._check(text)  # what is not filled yet may become anything
        return parameters.add_parameters(text, self._asked)

    def _check(self, text: str) -> None:
        try:
            replace(GridState(), filter=text).wanted  # noqa: B018
        except StorageError as error:
            raise forms.ValidationError(error.text) from None


class ValuesForm(forms.Form):
    """A field for each parameter of a filter, ``v-`` before its name; valid when the filter can be filled."""

    use_required_attribute = False  # nothing is a value too, in quotes

    def __init__(self, text: str, names: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._text = text
        self._names = names
        for name in names:
            self.fields[field_of(name)] = field = forms.CharField(
                label=name, strip=False, widget=forms.TextInput(attrs={"class": "mono", **_PLAIN})
            )
            field.empty_values = []
        self._focus(next(iter(names), ""))

    @property
    def values(self) -> dict[str, str]:
        return {name: self.cleaned_data.get(field_of(name), "") for name in self._names}

    def _focus(self, wanted: str) -> None:
        for name in self._names:
            self.fields[field_of(name)].widget.attrs["autofocus"] = name == wanted

    def clean(self) -> dict[str, Any]:
        try:
            parameters.fill_parameters(self._text, self.values)
        except UnfilledParameter as place:
            self.add_error(field_of(place.name), _why(place))
            self._focus(place.name)
        return self.cleaned_data


def field_of(name: str) -> str:
    return f"v-{name}"


def _why(place: UnfilledParameter) -> str:
    if place.fault is ParameterFault.MISSING:
        return _("Enter a value.")
    return _("This parameter isn't in quotes. Enter a literal such as 30, 30L, true or 'text'.")

"""Forms to start a rehearsal, and for a set of rules of an account's own."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from console.site.forms import MONO
from storage.models import Rehearsal
from storage.rehearsal.rehearsals import MOST_SEED
from storage.rehearsal.rules import NAME_LIMIT, dump_rules
from storage.rehearsal.sets import RuleSet

DEFAULT_SET: Final = "bad-day"
_MINUTES: Final = (
    ("10", _("10 minutes")),
    ("60", _("1 hour")),
    ("480", _("8 hours")),
    ("1440", _("1 day")),
)
_SCALES: Final = ("1", "0.1", "0.01", "0.001")


class StartForm(forms.Form):
    """Form to start a rehearsal; its set is chosen among cards of the page."""

    set = forms.CharField(widget=forms.HiddenInput)
    table = forms.CharField(
        label=_("Table"),
        required=False,
        max_length=255,
        widget=forms.TextInput(attrs={**MONO, "list": "rehearsal-tables", "placeholder": _("Whole account")}),
    )
    minutes = forms.ChoiceField(label=_("Duration"), choices=_MINUTES, initial="60")
    seed = forms.IntegerField(
        label=_("Seed"),
        required=False,
        min_value=0,
        max_value=MOST_SEED,
        widget=forms.TextInput(attrs={**MONO, "inputmode": "numeric", "placeholder": _("Random")}),
        help_text=_("The same seed gives a client the same faults again."),
    )
    scale = forms.ChoiceField(
        label=_("Scale of the rates"),
        required=False,
        initial="1",
        help_text=_("At 1 %, a partition is busy from 20 entities a second."),
    )

    def __init__(self, *args: Any, sets: Sequence[RuleSet], **options: Any) -> None:
        super().__init__(*args, **options)
        self.names = [it.name for it in sets]
        initial = str(self.initial.get("scale", ""))
        scales = [*_SCALES, *([initial] if _is_scale(initial) and initial not in _SCALES else [])]
        choices = [(it, f"{100 * float(it):g} %") for it in scales]
        self.fields["scale"].choices = choices  # type: ignore[attr-defined]

    @property
    def chosen(self) -> str:
        """Return the name of the selected set."""
        name = str(self["set"].value() or "")
        return name if name in self.names else DEFAULT_SET

    @property
    def duration(self) -> timedelta:
        return timedelta(minutes=int(self.cleaned_data["minutes"]))

    @property
    def scale_factor(self) -> float:
        return float(self.cleaned_data["scale"] or 1)


def _is_scale(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


def repeat(rehearsal: Rehearsal) -> dict[str, str]:
    """Return the fields that start a rehearsal like another."""
    minutes = round((rehearsal.ends_at - rehearsal.started_at).total_seconds() / 60)
    return {
        "set": rehearsal.set_name,
        "table": rehearsal.table_name,
        "seed": str(rehearsal.seed),
        "scale": f"{rehearsal.scale:g}",
        **({"minutes": str(minutes)} if str(minutes) in dict(_MINUTES) else {}),
    }


class SetForm(forms.Form):
    """Form for a set of rules; ``rules`` are JSON."""

    name = forms.CharField(
        label=_("Name"),
        max_length=NAME_LIMIT,
        widget=forms.TextInput(attrs=MONO),
        help_text=_("Letters, digits, hyphens and underscores."),
    )
    description = forms.CharField(label=_("What it does, in a sentence"), max_length=2000, required=False)
    rules = forms.CharField(
        label=_("Rules"),
        widget=forms.Textarea(attrs={**MONO, "rows": 16}),
        help_text=_("A JSON list of objects. Several rules can affect one request."),
    )

    def clean_rules(self) -> object:
        text: str = self.cleaned_data["rules"]
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            position = {"line": getattr(error, "lineno", 1), "column": getattr(error, "colno", 1)}
            raise forms.ValidationError(
                _("This is not JSON: there is an error in line %(line)s, column %(column)s."), params=position
            ) from None


def write_rules(found: RuleSet) -> str:
    """Format the rules of a set as JSON, each on a few lines."""
    lines = (json.dumps(rule, ensure_ascii=False) for rule in dump_rules(found.rules))
    return "[\n  " + ",\n  ".join(lines) + "\n]"

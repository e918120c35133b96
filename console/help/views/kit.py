"""Component gallery at /ui/kit/: every component and state in both themes.

It is for developers: only there with TABLERO_DEBUG=1, and without a sign-in.
"""

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.grid import grid
from console.grid.grid import Grid, GridOptions
from console.grid.state import GridState
from console.site.static_files import OTHER_STYLESHEETS
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.previews import EntityPreview
from storage.domain.values.edm import Edm, EdmValue
from storage.models import Account, Table

LONG = "a-row-key-that-goes-on-and-on-until-nobody-remembers-how-it-began-0123456789"


@dataclass(frozen=True, slots=True)
class Person:
    """Fake signed-in user for rendering the layout."""

    is_authenticated: bool = True
    shortcuts: bool = True

    def get_username(self) -> str:
        return "ada@example.org"


class Fields(forms.Form):
    name = forms.CharField(help_text="Three to 24 lowercase letters and digits.")
    broken = forms.EmailField(label="With an error")
    note = forms.CharField(widget=forms.Textarea, required=False)
    language = forms.ChoiceField(choices=[("en", "English"), ("tr", "Türkçe")])
    theme = forms.ChoiceField(choices=[("l", "Light"), ("d", "Dark")], widget=forms.RadioSelect)
    shortcuts = forms.BooleanField(required=False, initial=True, label="Single-letter shortcuts")
    locked = forms.CharField(required=False, disabled=True, initial="not yours to change")


SPACES: Final = (2, 4, 6, 8, 12, 16, 24, 32, 48)  # the spaces of site/tokens.css, as the names below
COLOURS: Final = (
    "canvas", "surface", "sunken", "text", "text-muted", "text-faint", "line", "line-strong", "accent", "accent-soft",
    "danger", "danger-soft", "warn", "warn-soft", "ok", "ok-soft", "info", "info-soft",
)  # fmt: skip
FONTS: Final = ("h1", "h2", "lead", "body", "small", "meta", "tiny", "data", "code")
THEMES: Final = {"light": ["light"], "dark": ["dark"], "both": ["light", "dark"]}


@login_not_required
def show(request: HttpRequest) -> HttpResponse:
    """Show the gallery, with sample accounts."""
    accounts = [
        Account(name="acme", colour="#b4570e", protected=True),
        Account(name="devstoreaccount1", colour="#0a6b66"),
    ]
    frame = {"user": Person(), "account": accounts[0], "accounts": accounts, "has_own_sidebar": True}
    if "toast" in request.GET:
        messages.success(request, "Saved the profile.")
        messages.error(request, "The table people could not be read.")
    theme = request.GET.get("theme", "")
    form = Fields({"name": "acme", "broken": "nobody", "language": "en", "theme": "l", "shortcuts": "on"})
    context: dict[str, Any] = {
        **frame,
        "themes": THEMES.get(theme, [""]),
        "choices": [(name, name == theme) for name in THEMES],
        "spaces": SPACES,
        "colours": COLOURS,
        "fonts": FONTS,
        "owner": Account(name="acme"),
        "hours": [0, 0, 3, 9, 14, 30, 22, 5, 0, 0, 1, 4],
        "form": form,
        "grid": rows(),
        "table": {"name": "people"},
        "zone_name": "UTC",
        "types": [f"Edm.{name}" for name in NAMES] + ["mix"],
        "kinds": ["", "accent", "ok", "warn", "danger", "info"],
        "tabs": [("Entities", "#a", True), ("Schema", "#b", False), ("Settings", "#c", False)],
        "menu": [("Copy as JSON", "#d", "copy"), ("Download", "#e", "download")],
        "long": LONG,
        "stylesheets": sorted(set(OTHER_STYLESHEETS.values())),
    }
    return render(request, "console/help/kit/kit.html", context)


NAMES = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"]
NOTES = [
    None,
    EdmValue(Edm.STRING, ""),
    EdmValue(Edm.STRING, "   "),
    EdmValue(Edm.STRING, '<img src=x onerror="alert(1)">'),
    EdmValue(Edm.STRING, "مرحبا بالعالم"),
    EdmValue(Edm.STRING, '{"lang":"sv","tz":"Europe/Stockholm","roles":["lead"]}' * 240),
]
SCORES = [
    EdmValue(Edm.INT64, 2**63 - 1),
    EdmValue(Edm.DOUBLE, float("nan")),
    EdmValue(Edm.INT32, 7),
    EdmValue(Edm.STRING, "high"),
]


def rows() -> Grid:
    setting = GridOptions(Table(account=Account(name="acme"), name="people"), GridState(is_utc=True))
    return grid.build_grid(setting, [_glance(number) for number in range(24)], before=0, is_last=False)


def _glance(number: int) -> EntityPreview:
    note = NOTES[number % 6]
    properties = {
        "Name": EdmValue(Edm.STRING, "Ada Lovelace" if number % 3 else "İğdır 中文 🦊"),
        "Age": EdmValue(Edm.INT32, 20 + number),
        "Balance": EdmValue(Edm.DOUBLE, -0.0 if number % 4 == 0 else number * 120.5),
        "Since": EdmValue(Edm.DATETIME, 17_424_217_151_234_567),
        "Active": EdmValue(Edm.BOOLEAN, number % 2 == 0),
        "Score": SCORES[number % 4],
        **({"Note": note} if note else {}),
        **({"Photo": EdmValue(Edm.BINARY, b"\xde\xad")} if number % 2 else {}),
    }
    key = EntityKey("se", f"ada-lovelace-{number:02}" if number else "")
    return EntityPreview(key, 17_640_000_000_000_000 + number, properties, {})

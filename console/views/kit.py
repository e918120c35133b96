"""/ui/dev/kit/: every component in every state, for who works on them and for the tests."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

LONG = "a-row-key-that-goes-on-and-on-until-nobody-remembers-how-it-began-0123456789"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody, so that the frame is drawn as for one."""

    is_authenticated: bool = True

    def get_username(self) -> str:
        return "ada@example.org"


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    colour: str
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    is_pinned: bool = False
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    text: str = ""
    state: str = ""
    type: str = ""
    size: str = ""
    is_pinned: bool = False
    is_number: bool = False


class Fields(forms.Form):
    name = forms.CharField(help_text="Three to 24 lower-case letters and digits.")
    broken = forms.EmailField(label="With an error")
    note = forms.CharField(widget=forms.Textarea, required=False)
    language = forms.ChoiceField(choices=[("en", "English"), ("tr", "Türkçe")])
    theme = forms.ChoiceField(choices=[("l", "Light"), ("d", "Dark")], widget=forms.RadioSelect)
    shortcuts = forms.BooleanField(required=False, initial=True, label="Single-letter shortcuts")
    locked = forms.CharField(required=False, disabled=True, initial="not yours to change")


@login_not_required
def show(request: HttpRequest) -> HttpResponse:
    if "toast" in request.GET:
        messages.success(request, "Saved the profile.")
        messages.error(request, "The table people could not be read.")
    accounts = [Account("acme", "#b4570e", protected=True), Account("devstoreaccount1", "#0a6b66")]
    form = Fields({"name": "acme", "broken": "nobody", "language": "en", "theme": "l", "shortcuts": "on"})
    context: dict[str, Any] = {
        "user": Person(),
        "account": accounts[0],
        "accounts": accounts,
        "form": form,
        "grid": grid(),
        "types": [f"Edm.{name}" for name in NAMES] + ["mix"],
        "kinds": ["", "accent", "ok", "warn", "danger", "info"],
        "tabs": [("Entities", "#a", True), ("Schema", "#b", False), ("Settings", "#c", False)],
        "menu": [("Copy as JSON", "#d", "copy"), ("Download", "#e", "download")],
        "long": LONG,
    }
    return render(request, "dev/kit.html", context)


NAMES = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"]
COLUMNS = [
    Column("PartitionKey", "Edm.String", is_pinned=True),
    Column("RowKey", "Edm.String"),
    Column("Name", "Edm.String"),
    Column("Age", "Edm.Int32", is_number=True),
    Column("Balance", "Edm.Double", is_number=True),
    Column("Since", "Edm.DateTime"),
    Column("Active", "Edm.Boolean"),
    Column("Score", "mix", is_number=True),
    Column("Note", "Edm.String"),
    Column("Photo", "Edm.Binary"),
]


def grid() -> dict[str, Any]:
    rows = [_row(number) for number in range(24)]
    return {"label": "Entities of people", "columns": COLUMNS, "rows": rows, "count": -1, "first": 2}


def _row(number: int) -> list[Cell]:
    notes = [
        Cell(state="absent"),
        Cell(state="empty"),
        Cell("···", state="whitespace"),
        Cell('<img src=x onerror="alert(1)">'),
        Cell("مرحبا بالعالم"),
        Cell('{"lang":"sv","tz":"Europe/Stockholm","roles":["lead"…', size="12.4 KB"),
    ]
    scores = [
        Cell("9223372036854775807", type="Edm.Int64", is_number=True),
        Cell("NaN", type="Edm.Double", is_number=True),
        Cell("7", type="Edm.Int32", is_number=True),
        Cell("high", type="Edm.String"),
    ]
    return [
        Cell("se", is_pinned=True),
        Cell(f"ada-lovelace-{number:02}" if number else "", state="" if number else "empty"),
        Cell("Ada Lovelace" if number % 3 else "İğdır 中文 🦊"),
        Cell(str(20 + number), is_number=True),
        Cell("-0.0" if number % 4 == 0 else f"{number * 120.5}", is_number=True),
        Cell("2025-03-19 22:01:55.1234567"),
        Cell("true" if number % 2 else "false"),
        scores[number % 4],
        notes[number % 6],
        Cell("3q2+7w==" if number % 2 else "", state="" if number % 2 else "absent"),
    ]

"""Every page, in every language and before any script runs: its title, heading, language and landmarks."""

import re

import pytest
from django.urls import reverse

from tests.console.addresses import ANSWERS, ARGUMENTS, NO_PAGES

# parts, and the end of what nobody has begun
NOT_HERE = {*NO_PAGES, "mfa_deactivate_totp", "mfa_view_recovery_codes"}
PAGES = [
    name
    for name, methods in ANSWERS.items()
    # what asks for a proof first, of something that there is
    if methods.get("GET", {}).get("ada") in (200, 302) and name not in NOT_HERE and "0" not in ARGUMENTS[name]
]
MAIN_NAVIGATION = {"en": "Main navigation", "tr": "Ana gezinme", "zh-hans": "主导航"}


@pytest.mark.parametrize("language", MAIN_NAVIGATION)
def test_structure(proven, people, language):
    people("se", "", Name="Ada")
    client = proven("ada")
    client.cookies["tablero_language"] = language
    faults = []
    for name in PAGES:
        answer = client.get(reverse(name, args=ARGUMENTS[name]), follow=True)
        faults += [(name, fault) for fault in find_faults(answer, language)]
    assert faults == []


def find_faults(answer, language):
    page = answer.content.decode()
    if answer.status_code != 200:
        yield answer.status_code
    for element in ("h1", "main"):
        if len(re.findall(rf"<{element}\b", page)) != 1:
            yield element
    if not re.search(r"<title>\s*\S[^<]*\S? - Tablero\s*</title>", page):
        yield "title"
    if f'<html lang="{language}"' not in page:
        yield "language"
    for needed in ('href="#main"', f'aria-label="{MAIN_NAVIGATION[language]}"'):
        if needed not in page:
            yield needed

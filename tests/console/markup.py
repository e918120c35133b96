"""Markup to compare with: how its source is broken into lines does not matter."""

import re

MAIN_NAVIGATION = {"en": "Main navigation", "tr": "Ana gezinme", "zh-hans": "主导航"}


def text(answer):
    """Return an answer's page without whitespace next to tags, and with single spaces elsewhere."""
    return re.sub(r"\s+(?=[<>])|(?<=>)\s+", "", re.sub(r"\s+", " ", answer.content.decode()))


def find_faults(answer, language):
    """Yield what a page lacks: its title, heading, language and landmarks."""
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

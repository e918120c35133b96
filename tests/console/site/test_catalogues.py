"""Turkish and Chinese say everything English says, with the same placeholders."""

import gettext
import os
import re
import shutil
import subprocess
import sys

import pytest
from django.conf import settings

from tests.live_server import ROOT

LOCALES = ["tr", "zh_Hans"]
CATALOGUES = ROOT / "console" / "locale"
PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]|\{(\w*)\}|%[sd]")


def read(catalogue):
    with catalogue.open("rb") as file:
        found = dict(gettext.GNUTranslations(file)._catalog)
    found.pop("")
    return found


def compiled(folder, text):
    (folder / "it.po").write_text(text)
    subprocess.run(
        ["msgfmt", "--check", "-o", folder / "it.mo", folder / "it.po"], check=True, capture_output=True
    )
    return read(folder / "it.mo")


@pytest.fixture(scope="session")
def extracted(require, tmp_path_factory):
    """The catalogues as makemessages would leave them."""
    require("xgettext", "the test of the catalogues")
    folder = tmp_path_factory.mktemp("messages")
    shutil.copytree(ROOT / "console", folder / "console", ignore=shutil.ignore_patterns("locale", "static"))
    shutil.copytree(CATALOGUES, folder / "locale")
    languages = [option for locale in LOCALES for option in ("-l", locale)]
    command = [sys.executable, "-m", "django", "makemessages", *languages, "--no-location", "--no-obsolete"]
    # without settings, which would be those of a project that is not there
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
    return folder / "locale"


@pytest.mark.parametrize("locale", LOCALES)
def test_nothing_is_left_to_translate(extracted, locale):
    path = extracted / locale / "LC_MESSAGES" / "django.po"
    for kind in ("--untranslated", "--only-fuzzy"):
        left = subprocess.run(["msgattrib", kind, path], check=True, capture_output=True, text=True).stdout
        assert re.findall(r'^msgid (?!"")(.*)', left, re.MULTILINE) == []


@pytest.mark.parametrize("locale", LOCALES)
def test_compiled_is_what_is_written(require, tmp_path, locale):
    require("msgfmt", "the test of the catalogues")
    folder = CATALOGUES / locale / "LC_MESSAGES"
    assert compiled(tmp_path, (folder / "django.po").read_text()) == read(folder / "django.mo")


@pytest.mark.parametrize("locale", LOCALES)
def test_placeholders_agree(locale):
    for message, translation in read(CATALOGUES / locale / "LC_MESSAGES" / "django.mo").items():
        if isinstance(message, tuple):
            continue  # of plurals, msgfmt compares each form with its own original
        text = message.rpartition("\4")[2]
        wanted = {match[0] for match in PLACEHOLDER.finditer(text)}
        assert {match[0] for match in PLACEHOLDER.finditer(translation)} == wanted, message


def test_every_language_has_a_catalogue():
    codes = {code for code, _ in settings.LANGUAGES} - {"en"}
    assert codes == {locale.lower().replace("_", "-") for locale in LOCALES}
    assert {path.name for path in CATALOGUES.iterdir()} == set(LOCALES)

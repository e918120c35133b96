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


TITLES = {"tr": "Turkish", "zh_Hans": "Simplified Chinese"}


def translations(locale):
    return [text for text in read(CATALOGUES / locale / "LC_MESSAGES" / "django.mo").values() if text]


def read(catalogue):
    with catalogue.open("rb") as file:
        found = dict(gettext.GNUTranslations(file)._catalog)
    found.pop("")
    return found


def compiled(msgfmt, folder, text):
    (folder / "it.po").write_text(text)
    command = [msgfmt, "--check", "-o", folder / "it.mo", folder / "it.po"]
    subprocess.run(command, check=True, capture_output=True)
    return read(folder / "it.mo")


@pytest.fixture(scope="session")
def extracted(require, tmp_path_factory):
    """The catalogues as makemessages would leave them."""
    require("xgettext", "the test of the catalogues")
    folder = tmp_path_factory.mktemp("messages")
    # nor __pycache__, into which other processes write
    ignored = shutil.ignore_patterns("locale", "static", "__pycache__")
    shutil.copytree(ROOT / "console", folder / "console", ignore=ignored)
    shutil.copytree(CATALOGUES, folder / "locale")
    languages = [option for locale in LOCALES for option in ("-l", locale)]
    command = [sys.executable, "-m", "django", "makemessages", *languages, "--no-location", "--no-obsolete"]
    # without settings, which would be those of a project that is not there
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
    return folder / "locale"


@pytest.mark.parametrize("locale", LOCALES)
def test_nothing_is_left_to_translate(require, extracted, locale):
    path = extracted / locale / "LC_MESSAGES" / "django.po"
    msgattrib = require("msgattrib", "the test of the catalogues")
    for kind in ("--untranslated", "--only-fuzzy"):
        left = subprocess.run([msgattrib, kind, path], check=True, capture_output=True, text=True).stdout
        assert re.findall(r'^msgid (?!"")(.*)', left, re.MULTILINE) == []


@pytest.mark.parametrize("locale", LOCALES)
def test_compiled_is_what_is_written(require, tmp_path, locale):
    msgfmt = require("msgfmt", "the test of the catalogues")
    folder = CATALOGUES / locale / "LC_MESSAGES"
    assert compiled(msgfmt, tmp_path, (folder / "django.po").read_text()) == read(folder / "django.mo")


@pytest.mark.parametrize("locale", LOCALES)
def test_placeholders_agree(locale):
    for message, translation in read(CATALOGUES / locale / "LC_MESSAGES" / "django.mo").items():
        if isinstance(message, tuple):
            continue  # of plurals, msgfmt compares each form with its own original
        text = message.rpartition("\4")[2]
        wanted = {match[0] for match in PLACEHOLDER.finditer(text)}
        assert {match[0] for match in PLACEHOLDER.finditer(translation)} == wanted, message


def banned(locale):
    """Words of the column "never" in the glossary, each with the term that it must not stand for."""
    text = (ROOT / "docs" / "glossary.md").read_text()
    section = text.partition(f"### {TITLES[locale]}\n")[2].partition("\n### ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    return [(word.strip(), row[0].strip()) for row in rows for word in row[2].split(",") if word.strip()]


@pytest.mark.parametrize("locale", LOCALES)
def test_translations_use_the_words_of_the_glossary(locale):
    words = banned(locale)
    assert len(words) > 20
    found = [
        f"{term}: {translation}"
        for translation in translations(locale)
        for word, term in words
        # in Turkish, at the beginning of a word, which may have suffixes
        if re.search(
            rf"(?<![\w-]){word}" if locale == "tr" else word, PLACEHOLDER.sub("", translation), re.IGNORECASE
        )
    ]
    assert found == []


def test_chinese_has_full_punctuation():
    half = re.compile(r"[\u4e00-\u9fff”）][,;:?!](?!\w*=)")
    assert [text for text in translations("zh_Hans") if half.search(text)] == []


def test_turkish_has_one_kind_of_apostrophe():
    assert [text for text in translations("tr") if "\u2019" in text] == []


@pytest.mark.parametrize("locale", LOCALES)
def test_sentences_end_alike(locale):
    """A sentence stays one: with its end, and with its ellipsis."""
    ends = {"…": ("…",), "?": ("?", "？"), ".": (".", "。"), "!": ("!", "！")}
    found = []
    for message, translation in read(CATALOGUES / locale / "LC_MESSAGES" / "django.mo").items():
        text = (message[0] if isinstance(message, tuple) else message).rpartition("\4")[2]
        if text[-1] in ends and len(text) > 1 and not translation.endswith(ends[text[-1]]):
            found.append((text, translation))
    assert found == []


def test_every_language_has_a_catalogue():
    codes = {code for code, _ in settings.LANGUAGES} - {"en"}
    assert codes == {locale.lower().replace("_", "-") for locale in LOCALES}
    assert {path.name for path in CATALOGUES.iterdir()} == set(LOCALES)

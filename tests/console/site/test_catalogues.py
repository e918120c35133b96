"""Turkish and Chinese say everything English says, with the same placeholders."""

import gettext
import os
import re
import shutil
import subprocess

import pytest
from django.core.management import CommandError, call_command
from django.utils.translation import get_language_info, to_language

from console.management import catalogues
from console.management.catalogues import CatalogueError, Message
from storage.domain.refusals import Reason
from tests.live_server import ROOT

LOCALES = catalogues.locales()
CATALOGUES = ROOT / "console" / "locale"
COMMAND = "translate what python3 manage.py messages adds and lists"
PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]|\{(\w*)\}|%[sd]")


def translations(locale):
    return [text for text in read(CATALOGUES / locale / "LC_MESSAGES" / "django.mo").values() if text]


def read(catalogue):
    with catalogue.open("rb") as file:
        results = dict(gettext.GNUTranslations(file)._catalog)
    results.pop("")
    return results


def compiled(msgfmt, folder, text):
    (folder / "it.po").write_text(text)
    command = [msgfmt, "--check", "-o", folder / "it.mo", folder / "it.po"]
    subprocess.run(command, check=True, capture_output=True)
    return read(folder / "it.mo")


@pytest.fixture(scope="session")
def extracted(require):
    """Extract the messages of the source."""
    require("xgettext", "the test of the catalogues")
    return catalogues.extract(os.environ)


def test_texts_of_views_templates_and_the_domain_are_extracted(extracted):
    texts = {entry.message.text for entry in extracted}
    assert {"Skip to content", "Select at least one method.", Reason.NO_ACCOUNT.value} <= texts
    assert len(texts) > 3000


@pytest.mark.parametrize("locale", LOCALES)
def test_nothing_is_left_to_translate(extracted, locale):
    result = catalogues.update(catalogues.load(locale), extracted)
    assert [message.text for message in result.added] == [], COMMAND
    assert [entry.message.text for entry in result.untranslated] == [], COMMAND


def test_a_long_text_that_is_missing_is_found(extracted):
    """Most texts of more than a line begin with an empty one in a catalogue."""
    whole = catalogues.update(catalogues.load("tr"), extracted).text  # with new messages of the source
    wrapped = [it for it in catalogues.read(whole) if 'msgid ""' in it.lines and it.is_translated]
    assert len(wrapped) > 100
    entry = next(entry for entry in wrapped if not entry.message.plural)
    without = whole.replace("\n".join(entry.lines), "")
    assert catalogues.update(without, extracted).added == [entry.message]
    start = entry.lines.index('msgstr ""')
    emptied = whole.replace("\n".join(entry.lines), "\n".join(entry.lines[: start + 1]))
    assert entry.message in [it.message for it in catalogues.update(emptied, extracted).untranslated]


CATALOGUE = r"""# A catalogue.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\n"

msgid "A"
msgstr "a"
msgid "B"
msgstr "b"

#, python-format
msgid ""
"%(n)s line\n"
"and another"
msgid_plural "%(n)s lines"
msgstr[0] "x"
msgstr[1] ""
"y"

msgctxt "verb"
msgid "A"
msgstr ""

#, fuzzy
msgid "C"
msgstr "c"

#~ msgid "old"
#~ msgstr "alt"
"""


def entries_of(*texts):
    blocks = ("\n".join(catalogues.write(*text, 2).splitlines()) for text in texts)
    return catalogues.read("\n\n".join(blocks))


def test_a_catalogue_is_read():
    read = catalogues.read(CATALOGUE)
    assert [entry.message for entry in read] == [
        Message("A"),
        Message("B"),
        Message(r"%(n)s line\nand another", plural="%(n)s lines"),
        Message("A", "verb"),
        Message("C"),
    ]
    assert [entry.translations for entry in read] == [["a"], ["b"], ["x", "y"], [""], ["c"]]
    assert [entry.is_translated for entry in read] == [True, True, True, False, False]
    lines = CATALOGUE.splitlines()
    assert all(lines[it.number - 1 :][: len(it.lines)] == it.lines for it in read)


def test_missing_messages_are_added_at_the_end_without_other_changes():
    long = "word " * 40 + "end"
    extracted = entries_of(
        (Message("A"), (), ()),
        (Message("%(n)s", plural="%(n)s of them"), ["python-format"], ["#. Translators: a number"]),
        (Message(long), (), ()),
        (Message(r"two\nlines", "verb"), (), ()),
    )
    result = catalogues.update(CATALOGUE, extracted)
    assert result.text == CATALOGUE + (
        "\n#. Translators: a number\n#, python-format\n"
        'msgid "%(n)s"\nmsgid_plural "%(n)s of them"\nmsgstr[0] ""\nmsgstr[1] ""\n'
        f'\nmsgid ""\n"{"word " * 23}"\n"{"word " * 17}end"\nmsgstr ""\n'
        '\nmsgctxt "verb"\nmsgid ""\n"two\\n"\n"lines"\nmsgstr ""\n'
    )
    assert result.added == [entry.message for entry in extracted[1:]]
    assert [entry.message for entry in result.untranslated] == result.added
    assert [entry.message.text for entry in result.unused] == ["B", r"%(n)s line\nand another", "A", "C"]
    assert catalogues.update(result.text, extracted).text == result.text


def test_messages_repeated_by_a_merge_are_united():
    repeated = f'{CATALOGUE}msgid "B"\nmsgstr "b"\n\nmsgid "D"\nmsgstr "d"\n'
    result = catalogues.update(repeated, catalogues.read(repeated))
    assert result.text == f'{CATALOGUE}\nmsgid "D"\nmsgstr "d"\n'
    with pytest.raises(CatalogueError, match='"B" is translated twice, in the lines 9 and 31'):
        catalogues.update(f'{CATALOGUE}msgid "B"\nmsgstr "other"\n', [])


def test_a_plural_that_has_changed_is_named():
    with pytest.raises(CatalogueError, match='The plural of "A" is another one'):
        catalogues.update(CATALOGUE, entries_of((Message("A", plural="As"), (), ())))


@pytest.fixture
def folder(monkeypatch, tmp_path, extracted):
    """Catalogues that may be changed, of a source whose messages are all translated."""
    shutil.copytree(CATALOGUES, tmp_path / "locale")
    translated = set.intersection(
        *(
            {entry.message for entry in catalogues.read(catalogues.load(it)) if entry.is_translated}
            for it in LOCALES
        )
    )
    monkeypatch.setattr(catalogues, "FOLDER", tmp_path / "locale")
    monkeypatch.setattr(
        catalogues, "extract", lambda environment: [it for it in extracted if it.message in translated]
    )
    return tmp_path / "locale"


@pytest.mark.long
def test_the_command_adds_lists_and_compiles(folder, capsys):
    path = folder / "tr" / "LC_MESSAGES" / "django.po"
    entry = next(it for it in catalogues.read(path.read_text()) if it.message.text == "Skip to content")
    path.write_text(path.read_text().replace("\n".join(entry.lines), ""))
    with pytest.raises(CommandError, match="not complete"):
        call_command("messages", "--check")
    assert "Skip to content" not in path.read_text()
    call_command("messages")
    assert path.read_text().endswith('\n\nmsgid "Skip to content"\nmsgstr ""\n')
    out = capsys.readouterr().out
    assert "tr: 1 new, 1 to translate, 0 no longer in the source\n" in out
    assert "to translate: Skip to content" in out
    assert "Skip to content" not in read(path.with_suffix(".mo"))
    path.write_text(path.read_text().replace('msgid "Skip to content"\nmsgstr ""', "\n".join(entry.lines)))
    call_command("messages")
    assert "Skip to content" in read(path.with_suffix(".mo"))
    call_command("messages", "--check")


def test_errors_of_msgfmt_are_reported(folder):
    path = folder / "tr" / "LC_MESSAGES" / "django.po"
    path.write_text(path.read_text() + '\n#, python-format\nmsgid "%(a)s"\nmsgstr "%(b)s"\n')
    with pytest.raises(CommandError, match=r"tr: The catalogue cannot be compiled:\n.*argument 'a'"):
        call_command("messages")


def test_without_gettext_the_command_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CommandError, match=r"needs xgettext and msgfmt of GNU gettext. On Debian"):
        call_command("messages")


@pytest.mark.parametrize("locale", LOCALES)
def test_compiled_is_what_is_written(require, tmp_path, locale):
    msgfmt = require("msgfmt", "the test of the catalogues")
    folder = CATALOGUES / locale / "LC_MESSAGES"
    assert compiled(msgfmt, tmp_path, (folder / "django.po").read_text()) == read(folder / "django.mo")


@pytest.mark.parametrize("locale", LOCALES)
def test_placeholders_agree(locale):
    for message, translation in read(CATALOGUES / locale / "LC_MESSAGES" / "django.mo").items():
        if isinstance(message, tuple):
            continue  # msgfmt compares each form of a plural with its own original
        text = message.rpartition("\4")[2]
        placeholders = {match[0] for match in PLACEHOLDER.finditer(text)}
        assert {match[0] for match in PLACEHOLDER.finditer(translation)} == placeholders, message


def banned(locale):
    """Words of the column "never" in the glossary, each with the term that it must not stand for."""
    text = (ROOT / "docs" / "glossary.md").read_text()
    title = get_language_info(to_language(locale))["name"]
    section = text.partition(f"### {title}\n")[2].partition("\n### ")[0]
    assert section, f"docs/glossary.md needs a section {title}, with the words of its translations"
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    return [(word.strip(), row[0].strip()) for row in rows for word in row[2].split(",") if word.strip()]


@pytest.mark.parametrize("locale", LOCALES)
def test_translations_use_the_words_of_the_glossary(locale):
    words = banned(locale)
    assert len(words) > 20
    results = [
        f"{term}: {translation}"
        for translation in translations(locale)
        for word, term in words
        # in Turkish, at the beginning of a word, which may have suffixes
        if re.search(
            rf"(?<![\w-]){word}" if locale == "tr" else word, PLACEHOLDER.sub("", translation), re.IGNORECASE
        )
    ]
    assert results == []


def test_chinese_has_full_punctuation():
    half = re.compile(r"[\u4e00-\u9fff”）][,;:?!](?!\w*=)")
    assert [text for text in translations("zh_Hans") if half.search(text)] == []


def test_turkish_has_one_kind_of_apostrophe():
    assert [text for text in translations("tr") if "\u2019" in text] == []


@pytest.mark.parametrize("locale", LOCALES)
def test_sentences_end_alike(locale):
    """A sentence stays one: with its end, and with its ellipsis."""
    ends = {"…": ("…",), "?": ("?", "？"), ".": (".", "。"), "!": ("!", "！")}
    results = []
    for message, translation in read(CATALOGUES / locale / "LC_MESSAGES" / "django.mo").items():
        text = (message[0] if isinstance(message, tuple) else message).rpartition("\4")[2]
        if text[-1] in ends and len(text) > 1 and not translation.endswith(ends[text[-1]]):
            results.append((text, translation))
    assert results == []


def test_every_language_has_a_catalogue():
    assert {path.name for path in CATALOGUES.iterdir()} == set(LOCALES), "run: python3 manage.py messages"


def test_begins_the_catalogue_of_a_new_language(folder, settings, capsys):
    settings.LANGUAGES = [("en", "English"), ("pl", "Polski")]
    with pytest.raises(CommandError, match="not complete"):
        call_command("messages", "--check")
    call_command("messages")
    assert re.search(r"^pl: (\d+) new, \1 to translate, 0 no longer", capsys.readouterr().out, re.MULTILINE)
    begun = (folder / "pl" / "LC_MESSAGES" / "django.po").read_text()
    assert '"Language: pl\\n"' in begun and "nplurals=4" in begun and 'msgstr[3] ""' in begun
    settings.LANGUAGES = [("en", "English"), ("xx", "Other")]
    with pytest.raises(CommandError, match="xx: Django does not know this language"):
        call_command("messages")

"""The documentation in the console."""

import re
from html import unescape

from django.utils.translation import override

from console.help import contents, documents
from tests.docs.pages import PAGES, anchors

NAMES = [page.stem for page in PAGES if page.stem != documents.INDEX]
LINES = [
    line
    for group in contents.GROUPS
    for line in (
        f"## {group.title}",
        *(f"- [{one.title}]({one.name}.md): {one.description}" for one in group.entries),
    )
]


def article_of(page):
    return page.partition("<article")[2].partition("</article")[0]


def test_contents_match_those_for_code_hosts():
    text = (documents.ROOT / f"{documents.INDEX}.md").read_text("utf-8")
    assert re.findall(r"^(?:## |- ).*", text, re.MULTILINE) == LINES


def test_every_document_is_described_in_the_language_of_the_page(visit):
    reader = visit("victor")
    for language in ["en", "tr", "zh-hans"]:
        reader.cookies["tablero_language"] = language
        page = unescape(reader.get("/ui/help/").content.decode())
        for name, entry in contents.entries().items():
            with override("en"):
                english = str(entry.description)
            with override(language):
                assert f'<a href="/ui/help/{name}/">{entry.title}</a>' in page, language
                assert str(entry.description) in page, language
            assert (english in page) == (language == "en"), language


def test_a_search_finds_documents_and_sections(visit):
    victor = visit("victor")
    page = victor.get("/ui/help/", {"q": "scheduled backup"}).content.decode()
    link = '<a href="/ui/help/operations/#scheduled-backups" data-result lang="en">Scheduled backups</a>'
    assert link in page
    assert "/ui/help/glossary/" not in page
    assert "No results for “no such thing”." in victor.get("/ui/help/?q=no such thing").content.decode()
    assert "The first 50 of " in victor.get("/ui/help/?q=the").content.decode()


def test_a_search_shows_the_words_around_a_match(visit):
    page = visit("victor").get("/ui/help/", {"q": "INVERTED ticks"}).content.decode()
    first, second = re.findall(r"<li>(.*?)</li>", page.partition('id="found"')[2], re.DOTALL)
    assert '<a href="/ui/help/design/#log-tail"' in first and "Table design" in first
    assert "begin the RowKey with <mark>inverted</mark> <mark>ticks</mark>: the largest" in first
    assert '<a href="/ui/help/glossary/"' in second


def test_pages_have_their_headings_and_their_links_lead_somewhere(visit):
    reader, paths = visit("victor"), set()
    for name in NAMES:
        page = reader.get(f"/ui/help/{name}/").content.decode()
        source = next(page for page in PAGES if page.stem == name)
        title = documents.Heading(1, str(contents.entries()[name].title)).anchor
        article = article_of(page)
        assert set(re.findall(r'<h\d id="([^"]+)">', article)) == anchors(source) - {title}, name
        assert f'<h1 lang="en">{contents.entries()[name].title}</h1>' in page, name
        assert {section.anchor for section in documents.sections(name)} == anchors(source) - {title}, name
        paths |= set(re.findall(r'href="(?!https?:)([^"#]+)', article))
    for path in paths - {f"/ui/help/{name}/" for name in NAMES}:
        assert reader.get(path).status_code == 200, path


def test_pictures_are_left_out(visit):
    page = visit("victor").get("/ui/help/console/").content.decode()
    assert "screenshots" not in page
    assert "picture" not in article_of(page)


def test_there_is_no_other_page(visit):
    assert visit("victor").get("/ui/help/nothing/").status_code == 404


def test_help_requires_a_sign_in(client):
    assert client.get("/ui/help/operations/").status_code == 302

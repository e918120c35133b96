"""The documentation in the console."""

import re

import pytest

from console.help import documents
from tests.docs.pages import PAGES, anchors

NAMES = [page.stem for page in PAGES if page.stem != documents.INDEX]


def article_of(page):
    return page.partition("<article")[2].partition("</article")[0]


def test_the_index_links_to_every_page(visit):
    page = visit("victor").get("/ui/help/").content.decode()
    assert documents.titles()
    for name, title in documents.titles().items():
        assert f'<a href="/ui/help/{name}/">{title}</a>' in page


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_its_headings_and_its_links_lead_somewhere(visit, name):
    reader = visit("victor")
    page = reader.get(f"/ui/help/{name}/").content.decode()
    source = next(page for page in PAGES if page.stem == name)
    title = documents.Heading(1, documents.titles()[name]).anchor
    article = article_of(page)
    assert set(re.findall(r'<h\d id="([^"]+)">', article)) == anchors(source) - {title}
    assert f'<h1 lang="en">{documents.titles()[name]}</h1>' in page
    for path in set(re.findall(r'href="([^":#]+)', article)):
        assert reader.get(path).status_code == 200, path


def test_pictures_are_left_out(visit):
    page = visit("victor").get("/ui/help/console/").content.decode()
    assert "screenshots" not in page
    assert "picture" not in article_of(page)


def test_there_is_no_other_page(visit):
    assert visit("victor").get("/ui/help/nothing/").status_code == 404


def test_help_is_for_people_who_are_signed_in(client):
    assert client.get("/ui/help/operations/").status_code == 302

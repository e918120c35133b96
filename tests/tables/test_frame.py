"""The frame around the pages of a table and of an account."""

import re

TABLE = "/ui/a/acme/t/people/"


def marked(page, label):
    """Return the links of a navigation that are marked as current, with the kind of mark."""
    nav = re.search(rf'<nav[^>]*aria-label="{label}".*?</nav>', page, re.DOTALL)
    assert nav, label
    result = re.findall(r'<a[^>]*aria-current="(\w+)"[^>]*>(.*?)</a>', nav[0], re.DOTALL)
    return [(how, re.sub(r"<[^>]*>", " ", text).split()[0]) for how, text in result]


def test_every_page_of_a_table_has_its_tables_and_tabs(visit, add_entity):
    client = visit("alice")
    for path, tab in [
        ("", ("page", "Entities")),
        ("schema/", ("page", "Schema")),
        ("history/", ("page", "History")),
        ("acl/", ("page", "Policies")),
        ("settings/", ("page", "Settings")),
        ("entity/new/", ("true", "Entities")),
        ("export/", ("true", "Entities")),
        ("facets/", ("true", "Entities")),
        ("queries/new/", ("true", "Entities")),
    ]:
        page = client.get(TABLE + path, {"f": "Age ge 3"}).content.decode()
        assert marked(page, "Table") == [tab], (path, tab)
        assert marked(page, "Main navigation") == [("page", "people")], (path, tab)
        assert 'id="star-button"' in page, (path, tab)
        assert page.count("<h1") == 1, (path, tab)


def test_every_page_of_an_account_marks_its_place(proven, add_entity):
    client = proven("alice")
    for path, place in [
        ("", ("page", "Tables")),
        ("tables/new/", ("true", "Tables")),
        ("activity/", ("true", "History")),
        ("sas/", ("true", "Access")),
        ("sas/new/", ("true", "Access")),
        ("keys/", ("true", "Access")),
        ("settings/", ("true", "Settings")),
    ]:
        page = client.get("/ui/a/acme/" + path).content.decode()
        assert marked(page, "Main navigation") == [place], (path, place)


def test_a_page_of_nothing_in_the_navigation_marks_nothing(visit):
    assert marked(visit("alice").get("/ui/me/").content.decode(), "Main navigation") == []

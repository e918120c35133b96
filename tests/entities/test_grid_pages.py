"""A page of entities."""

import html
import re

import pytest
from django.utils.html import strip_tags

from console.grid.tokens import encode_key
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import OperationTimedOut, ServerBusy
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import entities
from storage.tables import tables

PEOPLE = "/ui/a/acme/t/people/"
PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


def cells(answer):
    """Return the texts of the rows' cells, or the state of a cell without text; without the checkbox and the
    Timestamp.
    """
    return [[shown(cell) for cell in row.split("</td>")[1:-2]] for row in answer.context["grid"].rows]


def shown(cell):
    state = re.search(r'data-state="(\w+)"', cell)
    return state[1] if state and state[1] != "cut" else strip_tags(cell)


def keys(answer):
    return [row[1] for row in cells(answer)]


def test_shows_entities(visit, add_entity):
    add_entity("se", "ada", Name="Ada", Age=36, Note="")
    add_entity("se", "alan", Name="Alan", Active=True)
    answer = visit("victor").get(PEOPLE)
    assert [column.name for column in answer.context["grid"].columns] == [
        "PartitionKey", "RowKey", "Name", "Age", "Note", "Active", "Timestamp",
    ]  # fmt: skip
    assert cells(answer) == [
        ["se", "ada", "Ada", "36", "empty", "absent"],
        ["se", "alan", "Alan", "absent", "absent", "true"],
    ]


def test_the_number_of_queries_is_constant(visit, add_entity, account, django_assert_max_num_queries):
    add_entity("se", "01")
    client = visit("victor")
    for last in (2, 30):
        for number in range(2, last):
            add_entity("se", f"{number:02}", **{f"P{number}": number})
            tables.create(account, f"more{number}")
        client.get(PEOPLE)  # keeps the columns
        with django_assert_max_num_queries(23):  # two of them because a test is a transaction
            page = client.get(PEOPLE).content.decode()
        assert f'aria-rowcount="{last}"' in page
        assert page.count('<li data-filter-text="more') == last - 2


def test_a_refreshing_page_leaves_toasts_alone(visit, add_entity):
    add_entity("se", "ada")
    client = visit("victor")
    client.get(f"{PEOPLE}entity/?pk=se&rk=ada&go=next")
    for headers, is_told in (({**PART, "X-Tablero-Refresh": "true"}, False), (PART, True), (PART, False)):
        page = client.get(PEOPLE, headers=headers).content
        assert (b"This is the last entity" in page) == is_told


def test_changes_are_streamed_only_after_a_valid_token(visit, add_entity):
    add_entity("se", "ada")
    victor = visit("victor")
    page = victor.get(PEOPLE).content.decode()
    assert 'data-live="/ui/a/acme/t/people/live/"' in page
    assert victor.get(f"{PEOPLE}live/?after=x").status_code == 410
    assert visit("sam").get(f"{PEOPLE}live/").status_code == 404


def test_a_filter_and_its_text_stay(visit, add_entity):
    victor = visit("victor")
    assert b"create_entity" in victor.get(PEOPLE).content  # how to fill an empty one
    add_entity("se", "ada", Age=36)
    add_entity("se", "alan", Age=41)
    answer = victor.get(PEOPLE, {"f": "Age gt 40 and PartitionKey eq 'se'"}, headers=PART)
    assert keys(answer) == ["alan"]
    assert b"Age gt 40 and PartitionKey eq &#x27;se&#x27;" in answer.content
    assert b"<h1" not in answer.content
    assert answer.content.count(b'id="results"') == 1
    assert b'hx-swap-oob="true"' in answer.content
    assert b"No entities match" in victor.get(PEOPLE, {"f": "Age eq 1"}).content


@pytest.mark.parametrize("size", ["0", "-1", "30", "1000", "x"])
def test_another_page_size_is_refused_visibly(visit, add_entity, size):
    answer = visit("victor").get(PEOPLE, {"top": size, "f": "Age eq 1"}, follow=True)
    assert answer.redirect_chain == [(f"{PEOPLE}?f=Age+eq+1", 302)]
    assert f"“{size}” is not a page size (25, 50, 100, 200). You see 50" in answer.content.decode()
    assert visit("victor").get(PEOPLE, {"top": ""}).status_code == 200  # as the form sends none


def test_an_invalid_filter(visit, add_entity):
    add_entity("se", "ada", Age=36)
    client = visit("alice")
    for text in ["Age eq", "<i>", "\0", "(" * 3000]:
        answer = client.get(PEOPLE, {"f": text}, follow=True)
        assert answer.status_code == 422, text
        assert answer.context["error"], text
        assert b'aria-invalid="true"' in answer.content, text
        assert b"<i>" not in answer.content, text


def test_pages_forth_and_back(visit, add_entity):
    for number in range(60):
        add_entity("se", f"r{number:02}", Number=number)
    client = visit("alice")
    pages = [client.get(PEOPLE, {"top": "25", "f": "Number ge 5"})]
    for _ in range(2):
        pages.append(client.get(pages[-1].context["next"]))
    assert [key for page in pages for key in keys(page)] == [f"r{number:02}" for number in range(5, 60)]
    assert [(page.context["first"], page.context["last"]) for page in pages] == [(1, 25), (26, 50), (51, 55)]
    assert [page.context["grid"].count for page in pages] == [-1, -1, 56]
    assert not pages[2].context["next"]
    add_entity("se", "r10b", Number=10)  # an insert before the page does not move it
    back = client.get(pages[2].context["previous"])
    assert keys(back) == keys(pages[1])
    first = client.get(back.context["previous"])
    assert not first.context["previous"]
    assert keys(first)[:6] == [f"r{number:02}" for number in range(5, 11)]
    assert keys(client.get(pages[2].context["start"])) == keys(first)


def test_addresses_stay_short(visit, add_entity):
    for number in range(130):
        add_entity("p" * 500, f"{number:03}" + "r" * 300)
    client = visit("alice")
    page = client.get(PEOPLE, {"top": "25"})
    count = 1
    while page.context["next"]:
        assert len(page.context["next"]) < 2600
        page = client.get(page.context["next"])
        count += 1
    assert (count, page.context["last"]) == (6, 130)
    assert not page.context["previous"]  # where it was no longer fits
    assert client.get(page.context["start"]).context["first"] == 1


def test_values_are_shown_as_text(visit, add_entity):
    hostile = ["<img src=x>", "</script><script>alert(1)</script>", "{{ 7*7 }}", '" onload="x']
    client = visit("alice")
    for number, text in enumerate(hostile):
        add_entity(text.replace("/", ""), str(number), Value=text, Long=text * 100)
    for view in ["", "json"]:
        page = client.get(PEOPLE, {"view": view}).content.decode()
        assert "<img" not in page, view
        assert "alert(1)</script>" not in page, view
        assert 'onload="x' not in page, view
        assert "{{ 7*7 }}" in page, view


def test_large_values_make_no_large_page(visit, add_entity):
    for number in range(60):
        add_entity("se", str(number), Text="x" * 32000)
    client = visit("alice")
    for view in ("", "json", "nonsense"):
        assert len(client.get(PEOPLE, {"view": view}).content) < 150_000


@pytest.mark.parametrize("error", [ServerBusy, OperationTimedOut])
def test_shows_the_errors_of_the_service(visit, add_entity, monkeypatch, error):
    def fail(table, entity_query, past=None):
        raise error

    monkeypatch.setattr(entities, "preview_page", fail)
    answer = visit("alice").get(PEOPLE)
    assert answer.status_code == 422
    assert error.message in answer.content.decode()


def test_columns_keep_their_places(visit, add_entity):
    add_entity("a", "1", Name="x", Age=1)
    add_entity("b", "1", Age=2, Rare="y", Name="x")
    client = visit("victor")

    def heads(**query):
        text = client.get(PEOPLE, query).content.decode()
        return re.findall(r'<th [^>]*data-property="(\w+)"', text)[2:-1], text

    assert heads()[0] == ["Name", "Age", "Rare"]
    assert heads(f="PartitionKey eq 'b'")[0] == ["Name", "Age", "Rare"]
    names, text = heads(sort="-Age")
    assert names == ["Name", "Age", "Rare"]
    # the keys at both ends of a sorted page are no range
    assert 'class="range"' not in text and 'class="range"' in heads()[1]


def test_says_of_how_many(visit, add_entity):
    for number in range(30):
        add_entity("se", f"{number:02}", Number=number)
    totals = {
        text: visit("victor").get(PEOPLE, {"top": "25", "f": text}).context["total"]
        for text in ("", "Number ge 2", "Number ge 20")
    }
    assert {text: (total.number, total.is_exact) for text, total in totals.items()} == {
        "": (30, True), "Number ge 2": (28, True), "Number ge 20": (10, True),
    }  # fmt: skip


def test_counts(visit, add_entity, monkeypatch):
    add_entity("se", "ada", Age=36)
    client = visit("victor")
    assert b"of 1" in client.get(PEOPLE + "count/", {"f": "Age eq 36"}, headers=PART).content
    assert client.get(PEOPLE + "count/", {"f": "Age eq 36"})["Location"] == f"{PEOPLE}?f=Age+eq+36&exact=1"

    def give_up(*arguments):
        raise OperationTimedOut

    monkeypatch.setattr(entities, "count", give_up)
    assert b"counting took longer" in client.get(PEOPLE + "count/", headers=PART).content


def test_empty_results_come_with_hints(visit, add_entity):
    add_entity("se", "ada", Age=36, Name="Ada")
    client = visit("victor")
    for text, hint in [
        ("Age eq 5L", b"Age is stored as Int32, not Int64."),
        ("Age eq 5L", b"Use Age eq 5 </a>"),
        ("Nam eq 'x'", "“Nam” wasn't found in any entity.".encode().replace(b"'", b"&#x27;")),
        ("Nam eq 'x'", b"Use Name eq &#x27;x&#x27; </a>"),
        ("Name eq 'ada'", b'Use Name eq &#x27;Ada&#x27; <span class="count">(1)</span></a>'),
        ("Age eq 36 and Name eq 'x'", b"Remove Name eq &#x27;x&#x27;"),
        ("Age eq 36 and Name eq 'x'", b'href="/ui/a/acme/t/people/?f=Age+eq+36"'),
    ]:
        page = client.get(PEOPLE, {"f": text}).content.decode()
        [address] = re.findall(r'hx-get="([^"]*why-empty[^"]*)"', page)
        assert f'<a href="{address}">Find out why</a>' in page
        for headers in (PART, {}):
            shown = b" ".join(client.get(html.unescape(address), headers=headers).content.split())
            assert hint in shown, (text, hint)
    # the past is not searched
    assert b"why-empty" not in client.get(PEOPLE, {"f": "Age eq 1", "asof": "2020-01-01T00:00:00Z"}).content


def test_the_phone_list_shows_the_sorted_property(visit, add_entity):
    since = EdmValue(Edm.DATETIME, 17_424_217_151_234_567)
    add_entity("se", "ada", A="a", B="b", C="c", D="d", Since=since, Until=since)

    def places(query):
        content = visit("victor").get(f"{PEOPLE}?{query}").content.decode()
        return dict(re.findall(r'<td [^>]*class="[^"]*as-(\w+)[^"]*" data-\w+="(\w+)"', content))

    usual = {
        "partition": "PartitionKey",
        "key": "RowKey",
        "date": "Since",
        "first": "A",
        "second": "B",
        "third": "C",
    }
    assert places("") == places("sort=B") == usual
    assert places("sort=-D") == usual | {"third": "D"}
    assert places("sort=Until") == usual | {"date": "Until", "third": "C"}


def test_times_are_those_of_the_reader(visit, cast, add_entity):
    add_entity("se", "ada", Since=EdmValue(Edm.DATETIME, 17_424_217_151_234_567))
    cast["victor"].time_zone = "Europe/Istanbul"
    cast["victor"].save()
    client = visit("victor")
    assert b">2025-03-20 01:01:55<small>.1234567" in client.get(PEOPLE).content
    assert b">2025-03-19 22:01:55<small>.1234567" in client.get(PEOPLE, {"tz": "utc"}).content
    assert b"UTC+03" in client.get(PEOPLE).content


def test_two_beside_each_other(visit, add_entity):
    add_entity("se", "ada", Age=36, Name="x")
    add_entity("se", "alan", Age=36, Note="<i>")
    keys = [encode_key(EntityKey("se", name)) for name in ("ada", "alan")]
    client = visit("victor")
    posted = client.post(PEOPLE + "compare/", {"key": keys, "csrfmiddlewaretoken": "secret", "next": "/"})
    assert posted["Location"] == f"{PEOPLE}compare/?key={keys[0]}&key={keys[1]}"
    answer = client.get(posted["Location"])
    assert [(line["name"], line["is_same"]) for line in answer.context["lines"]] == [
        ("Age", True), ("Name", False), ("Note", False),
    ]  # fmt: skip
    assert b"<i>" not in answer.content

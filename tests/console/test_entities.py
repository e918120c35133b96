"""A page of entities."""

import re
from urllib.parse import quote

import pytest
from django.utils.html import strip_tags

from storage.domain.errors import OperationTimedOut, ServerBusy
from storage.operations import entities, tables

PEOPLE = "/ui/a/acme/t/people/"


def cells(answer):
    """The texts of the rows, of what has no text its state; without the box and the Timestamp."""
    return [[shown(cell) for cell in row.markup.split("</td>")[1:-2]] for row in answer.context["grid"].rows]


def shown(cell):
    state = re.search(r'data-state="(\w+)"', cell)
    return state[1] if state and state[1] != "cut" else strip_tags(cell)


def keys(answer):
    return [row[1] for row in cells(answer)]


def test_shows_entities(visit, people):
    people("se", "ada", Name="Ada", Age=36, Note="")
    people("se", "alan", Name="Alan", Active=True)
    answer = visit("victor").get(PEOPLE)
    assert [column.name for column in answer.context["grid"].columns] == [
        "PartitionKey", "RowKey", "Name", "Age", "Note", "Active", "Timestamp",
    ]  # fmt: skip
    assert cells(answer) == [
        ["se", "ada", "Ada", "36", "empty", "absent"],
        ["se", "alan", "Alan", "absent", "absent", "true"],
    ]


def test_a_filter_and_its_text_stay(visit, people):
    people("se", "ada", Age=36)
    people("se", "alan", Age=41)
    answer = visit("alice").get(PEOPLE, {"f": "Age gt 40 and PartitionKey eq 'se'"})
    assert keys(answer) == ["alan"]
    assert b"Age gt 40 and PartitionKey eq &#x27;se&#x27;" in answer.content


@pytest.mark.parametrize("text", ["Age eq", "Age eq 1 or", "<i>", "'", "\0", "(" * 3000])
def test_a_filter_that_cannot_be_read(visit, people, text):
    people("se", "ada", Age=36)
    answer = visit("alice").get(PEOPLE, {"f": text})
    assert answer.status_code == 422
    assert answer.context["error"]
    assert b'aria-invalid="true"' in answer.content
    assert b"<i>" not in answer.content


def test_nothing_matches(visit, people):
    people("se", "ada", Age=36)
    assert b"No entity matches" in visit("alice").get(PEOPLE, {"f": "Age eq 1"}).content


def test_an_empty_table_says_how_to_fill_it(visit, people):
    assert b"create_entity" in visit("alice").get(PEOPLE).content


def test_pages_forth_and_back(visit, people):
    for number in range(60):
        people("se", f"r{number:02}", Number=number)
    client = visit("alice")
    pages = [client.get(PEOPLE, {"top": "25", "f": "Number ge 5"})]
    for _ in range(2):
        pages.append(client.get(pages[-1].context["next"]))
    assert [key for page in pages for key in keys(page)] == [f"r{number:02}" for number in range(5, 60)]
    assert [(page.context["first"], page.context["last"]) for page in pages] == [(1, 25), (26, 50), (51, 55)]
    assert [page.context["grid"].count for page in pages] == [-1, -1, 56]
    assert not pages[2].context["next"]
    people("se", "r10b", Number=10)  # what comes before does not move a page
    back = client.get(pages[2].context["previous"])
    assert keys(back) == keys(pages[1])
    first = client.get(back.context["previous"])
    assert not first.context["previous"]
    assert keys(first)[:6] == [f"r{number:02}" for number in range(5, 11)]
    assert keys(client.get(pages[2].context["start"])) == keys(first)


def test_addresses_stay_short(visit, people):
    for number in range(130):
        people("p" * 500, f"{number:03}" + "r" * 300)
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


@pytest.mark.parametrize("after", ["nonsense", "-", "é", "W10"])
def test_a_damaged_address_is_the_first_page(visit, people, after):
    people("se", "ada")
    assert keys(visit("alice").get(PEOPLE, {"after": after})) == ["ada"]


@pytest.mark.parametrize("top", ["0", "1000000", "x", "-5", "²"])
def test_a_page_size_that_is_not_offered(visit, people, top):
    assert visit("alice").get(PEOPLE, {"top": top}).context["state"].size == 50


def test_the_letter_case_of_a_table_is_that_of_its_maker(visit, account, people):
    answer = visit("alice").get("/ui/a/acme/t/PEOPLE/", {"f": "A eq 1"})
    assert (answer.status_code, answer["Location"]) == (
        301,
        f"{PEOPLE}?f={quote('A eq 1').replace('%20', '+')}",
    )


@pytest.mark.parametrize("name", ["nothing", "x", "a-b", "%00", "tables", "ıda"])
def test_no_such_table(visit, people, name):
    assert visit("alice").get(f"/ui/a/acme/t/{name}/").status_code == 404


def test_a_table_that_was_deleted(visit, account, people):
    tables.delete(account.pk, "people")
    assert visit("alice").get(PEOPLE).status_code == 404


def test_values_are_shown_as_text(visit, people):
    hostile = [
        "<img src=x onerror=alert(1)>",
        "</script><script>alert(1)</script>",
        "{{ 7*7 }}",
        '" onload="x',
    ]
    for number, text in enumerate(hostile):
        people(text.replace("/", ""), str(number), Value=text)
    answer = visit("alice").get(PEOPLE)
    page = answer.content.decode()
    assert "<img" not in page
    assert "alert(1)</script>" not in page
    assert "49" not in cells(answer)[0]
    assert 'onload="x' not in page


def test_large_values_make_no_large_page(visit, people):
    for number in range(60):
        people("se", str(number), Text="x" * 32000)
    assert len(visit("alice").get(PEOPLE).content) < 100_000


@pytest.mark.parametrize("error", [ServerBusy, OperationTimedOut])
def test_says_what_the_service_says(visit, people, monkeypatch, error):
    def fail(table, wanted):
        raise error

    monkeypatch.setattr(entities, "glance", fail)
    answer = visit("alice").get(PEOPLE)
    assert answer.status_code == 422
    assert error.message in answer.content.decode()

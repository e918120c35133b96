"""Pages of logs: their filter in the URL, their pages, their days, and their pager."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils import timezone

from console.models import User
from console.site.log_page import LogQuery, QueryPart, by_day, cut_page, is_one_of, take_newest, url_field
from storage.domain.values.numbers import read_number


@dataclass(frozen=True, slots=True)
class FruitQuery(LogQuery):
    kind: str = url_field(is_one_of({"apple", "pear"}))
    name: str = url_field()
    key: str = url_field(has_spaces=True)
    span: str = url_field(part=QueryPart.VIEW)
    before: str = url_field(read_number, part=QueryPart.PAGE)


def read(text):
    return FruitQuery.read(QueryDict(text))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", FruitQuery()),
        ("kind=apple&name=a&key=b&span=c&before=0", FruitQuery("apple", "a", "b", "c", "0")),
        ("kind=plum&before=x&other=1", FruitQuery()),
        ("name=%20a%00%20&key=%20b%20", FruitQuery(name="a", key=" b ")),
        (f"name={'a' * 3000}", FruitQuery(name="a" * 2048)),
        ("kind=pear&kind=apple", FruitQuery("apple")),
    ],
)
def test_a_query_has_what_is_valid(text, query):
    assert read(text) == query


def test_only_filters_filter():
    assert not read("span=day&before=7").is_filtered
    assert read("key=%20").is_filtered


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({}, "?kind=apple&name=a%26b&span=day"),
        ({"before": 7}, "?kind=apple&name=a%26b&span=day&before=7"),
        ({"name": "", "format": "csv"}, "?kind=apple&span=day&format=csv"),
        ({"kind": "", "name": "", "span": ""}, "?"),
    ],
)
def test_a_change_leaves_the_page(changed, text):
    query = read("kind=apple&name=a%26b&span=day&before=9")
    assert query.query_string(**changed) == text


def test_files_have_all_that_is_filtered():
    assert read("kind=pear&span=day&before=9").export_urls("/export/", span="") == {
        "csv_url": "/export/?kind=pear&format=csv",
        "ndjson_url": "/export/?kind=pear&format=ndjson",
    }


@pytest.mark.django_db
def test_pages_follow_each_other():
    numbers = [User.objects.create(username=f"user{number}").pk for number in range(5)]
    before, pages = "", []
    while True:
        rows, older = take_newest(User.objects.filter(pk__in=numbers), before, 2)
        pages.append([numbers.index(it.pk) for it in rows])
        if older is None:
            break
        before = str(older)
    assert pages == [[4, 3], [2, 1], [0]]
    assert [it.pk for it in take_newest(User.objects.filter(pk__in=numbers), "odd", 5)[0]] == numbers[::-1]
    assert cut_page([], 2) == ([], None)


def test_days_are_those_of_the_reader(monkeypatch):
    now = datetime(2026, 11, 29, 21, 30, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: now)
    moments = [now - timedelta(hours=hours) for hours in (0, 1, 24, 48)]
    with timezone.override("Europe/Istanbul"):  # three hours ahead
        days = [(day.title, day.is_today, len(day.rows)) for day in by_day(moments, lambda it: it)]
    # local times: 00:30 on the 30th, 23:30 on the 29th, 00:30 on the 29th, 00:30 on the 28th
    assert days == [("Today", True, 1), ("Yesterday", False, 2), ("2026-11-28", False, 1)]
    assert [day.title for day in by_day(moments, lambda it: it)] == ["Today", "Yesterday", "2026-11-27"]


def test_the_pager_links_what_there_is():
    def draw(**links):
        return render_to_string("components/log_pager.html", links)

    assert "<nav" not in draw()
    assert 'href="?after=1" rel="prev"' in draw(newer="?after=1") and "Older" not in draw(newer="?after=1")
    assert 'href="?before=1" rel="next"' in draw(older="?before=1") and "Newer" not in draw(older="?before=1")

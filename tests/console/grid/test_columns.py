"""Columns as they stand in an address, and as they are arranged."""

import re
from itertools import accumulate

import pytest

from console.grid.columns import (
    DEFAULT,
    ColumnChoice,
    arrange_columns,
    describe_columns,
    move_column,
    parse_columns,
)
from console.grid.property_order import order_properties
from storage.tables import tables

SEEN = ["Name", "Age", "Score"]


def test_a_table_keeps_the_order_in_which_its_properties_were_first_seen(add_entity, account):
    table = tables.get(account, "people")
    assert order_properties(table, ["Name", "Age"]) == ["Name", "Age"]
    assert order_properties(table, ["Rare", "Age", "Name", "Age"]) == ["Name", "Age", "Rare"]
    assert order_properties(table, ["Rare", "Name"]) == ["Name", "Rare"]
    assert order_properties(table, ["Rare"], is_part=True) == ["Name", "Age", "Rare"]


def test_a_filter_takes_no_columns_away(visit, add_entity):
    add_entity("se", "1", Name="Ada", Age=36)
    add_entity("se", "2", Name="Grace")

    def headings(query=""):
        content = visit("victor").get(f"/ui/a/acme/t/people/?{query}").content.decode()
        return re.findall(r'<th [^>]*data-property="(\w+)" data-type="([\w.]*)"', content)

    every = headings()
    assert ("Age", "Edm.Int32") in every
    # no entity of the page has an Age, which can be set there in its type
    assert headings("f=RowKey+eq+'2'") == every
    assert "Age" not in dict(headings("f=RowKey+eq+'2'&s=Name"))


def test_columns_are_as_wide_as_their_content_or_as_chosen(visit, add_entity):
    add_entity("se", "1", Name="Ada Lovelace of London")

    def widths(query):
        content = visit("victor").get(f"/ui/a/acme/t/people/?{query}").content.decode()
        assert content.count("data-width=") == ("321" in query)
        return [int(width) for width in re.findall(r"<col width=\"(\d+)\">", content)[1:]]

    *keys, name, timestamp = widths("cols=*")
    assert name == 22 * 8 + 25
    assert timestamp == len("2026-11-30 12:00:00") * 8 + 25
    assert widths("cols=Name:321,*") == [*keys, 321, timestamp]


def test_rows_of_a_wide_grid_have_the_cells_of_later_columns_as_text(visit, add_entity):
    for row in "12":
        add_entity("se", row, **{f"P{number:03}": number for number in range(100)})
    content = visit("victor").get("/ui/a/acme/t/people/").content.decode()
    rows = re.findall(r"<tr data-key.*?</tr>", content)
    assert [row.count("<td") for row in rows] == [1 + 103] * 2
    widths = accumulate(int(width) for width in re.findall(r'<col width="(\d+)">', content)[1:])
    first = sum(width <= 2560 for width in widths)
    assert 20 < first < 40
    assert [row.partition("<script")[0].count("<td ") for row in rows] == [1 + first] * 2
    assert f"The first {first} of 103 columns" in content
    # not in a row that replaces another one, or without another one
    assert "text/html" not in visit("victor").get("/ui/a/acme/t/people/?f=RowKey+eq+'1'").content.decode()


def test_a_grid_shows_some_columns_of_entities_with_little_in_common(visit, add_entity):
    for row in range(4):
        add_entity("se", f"{row}", **{f"P{row}{number:03}": number for number in range(200)})
    client = visit("victor")
    address = "/ui/a/acme/t/people/?sort=-P0150"
    content = client.get(address).content.decode()
    heads = re.findall(r'<th[^>]* data-property="(\w+)"', content)
    assert len(heads) == 300
    assert {"P0150", "Timestamp"} <= {*heads}
    assert "300 of 803" in content

    choice = client.get("/ui/a/acme/t/people/columns/").content.decode()
    assert "A grid shows up to 300 columns." in choice
    fields = {
        name: re.findall(rf'<input[^>]* name="{name}" value="(\w+)"', choice)
        for name in ("name", "show", "add")
    }
    assert [len(fields[name]) for name in fields] == [803, 300, 503]
    form = {
        "name": fields["name"],
        "show": set(fields["show"]) - {"PartitionKey"},
        "add": fields["add"][-1],
        "rest": "on",
    }
    shown = client.post("/ui/a/acme/t/people/columns/", form, follow=True).content.decode()
    heads = re.findall(r'<th[^>]* data-property="(\w+)"', shown)
    assert len(heads) == 300
    assert heads[-1] == fields["add"][-1]


def names(text, seen=SEEN):
    return [choice.name for choice in arrange_columns(parse_columns(text), seen)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "PartitionKey RowKey Name Age Score Timestamp"),
        ("Score,*", "PartitionKey RowKey Score Name Age Timestamp"),
        ("Age,Name", "PartitionKey RowKey Age Name"),
        ("-Age,*", "PartitionKey RowKey Name Score Timestamp"),
        ("Timestamp,*,Age", "PartitionKey RowKey Timestamp Name Score Age"),
        ("*,!Score", "PartitionKey RowKey Score Name Age Timestamp"),
        ("RowKey,Name,PartitionKey", "RowKey Name PartitionKey"),
        ("-PartitionKey,-RowKey,-Timestamp,*", "PartitionKey RowKey Name Age Score"),
        ("Rare,*", "PartitionKey RowKey Rare Name Age Score Timestamp"),
    ],
)
def test_arrange(text, expected):
    assert names(text) == expected.split()


def test_widths_and_pins():
    result = arrange_columns(parse_columns("!RowKey:240,Name:90,Age:9,Score:9999"), SEEN)
    assert result == [
        ColumnChoice("PartitionKey", is_pinned=True),
        ColumnChoice("RowKey", 240, is_pinned=True),
        ColumnChoice("Name", 90),
        ColumnChoice("Age", 40),
        ColumnChoice("Score", 2000),
    ]


@pytest.mark.parametrize("text", ["", "*", "Name,*", "!RowKey:240,Name,-Age,*", "Name:90,Age", "*,Name"])
def test_columns_are_written_as_they_were_read(text):
    assert str(parse_columns(text)) == (text or "*")


@pytest.mark.parametrize("text", [",", ":", "a b", "<i>", "-", "!", "Name:x", "Name:12345", "\0,\n"])
def test_invalid_columns_are_left_out(text):
    assert parse_columns(text) == DEFAULT
    assert str(parse_columns(f"{text},Name:90,Name:100,*")) == "Name:90,*"
    assert len(parse_columns(",".join(f"P{number}" for number in range(5000))).choices) == 301


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ([], "*"),
        ([("Age", -1)], "Age,*"),
        ([("Score", -1)], "Name,Score,*"),
        ([("Timestamp", -1)], "Name,Age,Timestamp,*"),
        ([("RowKey", -1)], "!RowKey,!PartitionKey,*"),
        ([("Name", -1)], "Name,*"),  # it does not get among the pinned ones
        ([("Nobody", 1)], "*"),
    ],
)
def test_only_what_must_be_is_said(moves, expected):
    shown = arrange_columns(DEFAULT, SEEN)
    loose = {*SEEN, "Timestamp"}
    for name, by in moves:
        shown = move_column(shown, name, by)
        loose -= {name}
    result = describe_columns(shown, [], loose=loose)
    assert str(result) == expected
    assert arrange_columns(result, SEEN) == shown


def test_hidden_ones_are_said():
    result = describe_columns(
        arrange_columns(DEFAULT, ["Name"]), ["Age", "RowKey"], loose={"Name", "Timestamp"}
    )
    assert str(result) == "-Age,*"

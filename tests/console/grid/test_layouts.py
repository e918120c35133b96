"""The choice of columns, and layouts of them."""

import pytest

from console.grid import columns
from console.models import ColumnLayout
from storage.tables import tables

PEOPLE = "/ui/a/acme/t/people/"


@pytest.fixture
def logs(account, add_entity):
    add_entity("p", "1", Name="Ada", Age=36)
    return {name: tables.create(account, name) for name in ("logs1", "logs42")}


def names(answer):
    return [column.name for column in answer.context["grid"].columns]


def choose(client, **fields):
    return client.post(PEOPLE + "columns/", {"name": ["PartitionKey", "RowKey", "Name", "Age"], **fields})


def test_offers_all_there_are(visit, logs, add_entity):
    for number in range(60):
        add_entity("q", f"{number}", **({"Rare": 1} if number == 59 else {"Name": "x"}))
    answer = visit("victor").get(PEOPLE + "columns/", {"top": 25})
    results = {line[0].name: line for line in answer.context["lines"]}
    assert results["Rare"][0].is_hidden
    assert (results["Rare"][1], results["Name"][1]) == ("Edm.Int32", "Edm.String")


def test_a_choice_becomes_an_address(visit, logs):
    victor = visit("victor")
    answer = choose(victor, show=["Name"], state="cols=Name:200,*")  # a width that was dragged stays
    assert answer["Location"] == PEOPLE + "?cols=%21PartitionKey%2C%21RowKey%2CName%3A200".replace("%21", "")
    assert names(victor.get(answer["Location"])) == ["PartitionKey", "RowKey", "Name"]
    # the properties that an address selects are columns like chosen ones
    selected = victor.get(PEOPLE + "columns/", {"s": "Name"})
    assert [it.name for it, *_ in selected.context["lines"] if not it.is_hidden] == [
        "PartitionKey",
        "RowKey",
        "Name",
    ]
    assert "Name" not in choose(victor, show=["Age"], state="s=Name")["Location"]


def test_up_and_down(visit, logs):
    answer = choose(visit("victor"), show=["Name", "Age"], up="Age", state="top=25")
    assert answer["Location"].startswith(PEOPLE + "columns/?top=25&cols=")
    assert "Age%2CName" in answer["Location"]


def test_the_last_choice_is_remembered(visit, logs):
    client = visit("victor")
    choose(client, cols="Age,*")
    answer = client.get(PEOPLE, {"top": "25"})
    assert (answer.status_code, answer["Location"]) == (302, PEOPLE + "?top=25&cols=Age%2C%2A")
    assert visit("eve").get(PEOPLE).status_code == 200


def save(client, **fields):
    return client.post(PEOPLE + "layouts/", {"name": "Mine", "cols": "Age,Name", **fields})


def test_a_layout_for_a_pattern(visit, logs):
    victor = visit("victor")
    save(victor, tables="LOGS*", cols="Name")
    save(victor, tables="LOGS*")  # in its place
    assert ColumnLayout.objects.get().columns == ["Age", "Name"]
    assert victor.get("/ui/a/acme/t/logs42/")["Location"].endswith("?cols=Age%2CName")
    assert visit("eve").get("/ui/a/acme/t/logs42/").status_code == 200
    assert victor.get(PEOPLE).status_code == 200


def test_a_shared_layout(visit, logs):
    save(visit("eve"), shared="on")
    victor = visit("victor")
    assert victor.get(PEOPLE).status_code == 302
    assert save(victor, shared="on").status_code == 403


def test_the_closest_one_is_taken(cast, account, logs):
    for name, pattern, user in [
        ("any", "*", cast["victor"]),
        ("all", "logs*", None),
        ("own", "logs*", cast["victor"]),
        ("long", "logs4*", None),
    ]:
        columns.save_layout(user, account, name, pattern, name)
    result = columns.layouts_for(cast["victor"], logs["logs42"])
    assert [layout.name for layout in result] == ["long", "own", "all", "any"]


def test_deletes(visit, logs):
    eve = visit("eve")
    save(eve, shared="on")
    shared = ColumnLayout.objects.get()
    address = f"{PEOPLE}layouts/{shared.pk}/delete/"
    assert visit("victor").post(address).status_code == 403
    assert eve.post(address).status_code == 302
    save(eve)
    mine = ColumnLayout.objects.get()
    visit("alice").post(f"{PEOPLE}layouts/{mine.pk}/delete/")
    assert ColumnLayout.objects.count() == 1


def test_columns_that_fit_into_no_address_are_shown(visit, add_entity):
    """A shared layout of long names must not close a table for everybody."""
    add_entity("se", "ada", Name="Ada", Age=36)
    names = [f"é{number:03}" + "x" * 200 for number in range(250)]
    shared = {"name": "all", "tables": "*", "shared": "1", "cols": ",".join(["Age", *names])}
    assert visit("eve").post(f"{PEOPLE}layouts/", shared).status_code == 302
    client = visit("victor")
    page = client.get(PEOPLE)
    assert page.status_code == 200
    assert [column.name for column in page.context["grid"].columns][2:4] == ["Age", names[0]]
    assert len(page.context["times"]) < 1000
    chosen = client.post(f"{PEOPLE}columns/", {"cols": ",".join(["Name", *names])})
    assert chosen.status_code == 302
    page = client.get(chosen["Location"])
    assert [column.name for column in page.context["grid"].columns][2:4] == ["Name", names[0]]

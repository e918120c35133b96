"""Changes that anybody made to entities: listed with all other activity, counted by time, and undone."""

from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from django.utils import timezone
from django.utils.html import strip_tags

from console.grid.differences import MOST
from storage.accounts import account_settings
from storage.activity import activity
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert
from storage.domain.entities.entity import EntityKey
from storage.domain.history.recorded import Op
from storage.domain.values.etag import ANY
from storage.entities import edits
from storage.history import changes
from storage.history.changes import ChangeFilter
from storage.history.subject import HistoryVerb
from storage.models import Activity, HistorySegment, RegisteredSas
from storage.tables import tables
from tests.history.test_changes import REQUESTS, actor, at, entity, record, write
from tests.undo.test_data_undo import content, upsert

PAGE = "/ui/a/acme/activity/"
REVERT = f"{PAGE}revert/"
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}
SCRIPT = actor(2, "0f5a", ActorKind.SAS)


@pytest.fixture
def table(account, add_entity):
    RegisteredSas.objects.create(
        account=account, fingerprint="0f5a", kind="table", parameters=[], label="Nightly <import>", author=""
    )
    return tables.get(account, "people")


@pytest.fixture
def mistake(table):
    write(table, actor(1), *(upsert(name, 1) for name in "abcd"))
    write(
        table,
        SCRIPT,
        *(upsert(name, 2) for name in "abc"),
        Insert(entity("e", 2)),
        Delete(EntityKey("p", "d"), ANY),
    )
    write(table, actor(3), upsert("c", 3))
    return table


def said(answer):
    return [
        " ".join(strip_tags(part.split("<details")[0].split('class="event-said">')[1]).split())
        for part in answer.content.decode().split('<li class="event')[1:]
    ]


def entries(answer):
    return [entry for day in answer.context["days"] for run in day.rows for entry in run.entries]


def test_all_changes_are_in_one_list(visit, account, mistake):
    edits.apply(mistake, [Insert(entity("f"))], by=Actor(ActorKind.USER, "eve"))
    victor = visit("victor")
    answer = victor.get(PAGE)
    assert said(answer)[:4] == [
        "eve inserted p / f into people",
        "A client using key1 changed p / c in people",
        "A client using the SAS token Nightly &lt;import&gt; changed 5 entities in people +1 ~3 −1",
        "A client using key1 inserted 4 entities into people",
    ]
    assert b"Nightly <import>" not in answer.content
    assert said(answer)[-1] == "The server created the account acme"
    assert said(victor.get("/ui/a/acme/t/people/history/"))[:4] == said(answer)[:4]
    # viewers look only
    assert b"/revert/" not in answer.content
    assert b"/revert/" in visit("max").get(PAGE).content


def test_a_key_beyond_those_of_the_activity_is_found_in_the_history(visit, table):
    many = [Insert(entity(f"{number:03}")) for number in range(activity.KEYS + 1)]
    edits.apply(table, many, by=Actor(ActorKind.USER, "eve"))
    text = f"eve inserted {len(many)} entities into people"
    victor = visit("victor")
    assert said(victor.get(PAGE, {"key": "000"})) == [text]
    assert said(victor.get(PAGE, {"key": f"{activity.KEYS}"})) == [
        f"eve inserted p / {activity.KEYS} into people"
    ]


def test_the_list_is_filtered(visit, mistake):
    client = visit("victor")
    for asked, requests in [
        ({"how": "sas"}, [2]),
        ({"how": "key"}, [3, 1]),
        ({"who": "nightly"}, [2]),
        ({"what": "updates"}, [3, 2]),
        ({"what": "deletes"}, [2]),
        ({"what": "entities"}, [3, 2, 1]),
        ({"what": "tables"}, []),
        ({"key": "e"}, [2]),
        ({"table": "PEOPLE"}, [3, 2, 1]),
        ({"table": "none"}, []),
        ({"how": "carrier pigeon"}, [3, 2, 1]),
    ]:
        shown = entries(client.get(PAGE, asked))
        assert [REQUESTS.index(it.change.request) for it in shown if it.change] == requests, asked


@pytest.fixture
def one_minute(monkeypatch):
    """Make each moment a little later than the one before, all within one minute, at whose end a page may end."""
    start, number = timezone.now().replace(second=0, microsecond=0), count()
    monkeypatch.setattr(timezone, "now", lambda: start + timedelta(milliseconds=next(number)))


def test_pages_of_both_kinds(one_minute, visit, account, table):
    HistorySegment.objects.update(started_at=at(-1000))
    for number in range(120):
        if number % 3:
            record(table, 1, number, REQUESTS[number % 100] if number < 100 else None)
        else:
            account_settings.change(account, label=str(number))
    client = visit("victor")
    seen, address, pages = [], PAGE, 0
    while address and pages < 9:
        answer = client.get(address)
        seen += [it.change.latest if it.change else it.done.at for it in entries(answer)]
        address, pages = answer.context["older"], pages + 1
    assert len(seen) == 120 + Activity.objects.filter(account=account).count() - 40
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == len(seen)
    back, steps = answer.context["newer"], 0
    while back:
        shown = client.get(back)
        back, steps = shown.context["newer"], steps + 1
    assert [it.change and it.change.latest for it in entries(shown)][:3] == [None, None, None]
    assert steps == pages - 1


def test_successive_requests_of_a_caller_are_one_line(visit, account, table):
    HistorySegment.objects.update(started_at=at(-1000))
    record(table, 5, 0)
    record(table, 60, 200, by=SCRIPT)
    client = visit("max")
    answer = client.get(PAGE)
    days = answer.context["days"]
    load, few = [run for day in days for run in day.rows if run.entries[0].change]
    # a load is one entry, a few requests are one line that opens
    assert load.joined is None and load.entries[0].change.requests == 60
    assert few.joined.change.number == 5 and len(few.entries) == 5
    page = " ".join(strip_tags(answer.content.decode()).split())
    assert (
        "inserted 60 entities into people in 60 requests" in page
        and "inserted 5 entities into people in 5 requests" in page
    )
    assert "Nightly &lt;import&gt;" in answer.content.decode().split("<datalist")[1].split("</datalist>")[0]
    for entry, number in ((load.entries[0], 60), (few.joined, 5)):
        details = client.get(entry.address)
        assert len(details.context["changed"]) == min(number, MOST)
        preview = client.get(entry.revert, headers=HTMX)
        assert preview.context["preview"].changes == number
    assert client.get(few.joined.address.replace("by=key", "by=sas")).status_code == 404


def test_a_page_of_runs_has_more_entries(visit, account, table):
    HistorySegment.objects.update(started_at=at(-1000))
    for minute in range(40):
        record(table, 9, minute * 60)
    client = visit("victor")
    seen, address, lines = [], PAGE, []
    while address:
        answer = client.get(address)
        rows = [run for day in answer.context["days"] for run in day.rows]
        lines.append(len(rows))
        seen += [(run.joined or run.entries[0]).done.at for run in rows]
        address = answer.context["older"]
    assert lines[0] >= 25 and len(lines) == 2
    assert len(seen) == len(set(seen)) and seen == sorted(seen, reverse=True)
    assert sum(moment <= at(2400) for moment in seen) >= 40


def test_an_outer_blank_of_a_key_is_shown(visit, account, table):
    edits.apply(table, [Insert(entity(" lead"))], by=Actor(ActorKind.USER, "eve"))
    assert "p / ␣lead" in said(visit("victor").get(PAGE))[0]


@pytest.mark.parametrize(("number", "asked"), [(5, {"what": "inserts"}), (60, {"key": "p"})])
def test_a_line_is_undone_without_what_it_does_not_count(visit, account, table, number, asked):
    """Changes in the same minute: of the same key from another address, of the same client but not asked for."""
    HistorySegment.objects.update(started_at=at(-1000))
    record(table, number, 10)
    record(table, number, 10, by=replace(actor(0), address="10.0.0.2"))
    record(table, number, 10, by=replace(actor(0), agent="another program"))
    if asked.get("what"):
        record(table, 7, 10, op=Op.UPDATE)
    client = visit("max")
    lines = [run for day in client.get(PAGE, asked).context["days"] for run in day.rows]
    lines = [run.joined or run.entries[0] for run in lines if run.entries[0].change]
    assert [it.change.number for it in lines] == [number] * 3
    for line in lines:
        assert client.get(line.revert, headers=HTMX).context["preview"].changes == number
        assert len(client.get(line.address).context["changed"]) == min(number, MOST)


def test_a_line_of_a_request_is_undone_as_far_as_it_is_shown(visit, mistake):
    client = visit("max")
    page = client.get(PAGE, {"how": "sas", "what": "updates"})
    [line] = [it for it in entries(page) if it.change]
    assert line.change.number == client.get(line.revert, headers=HTMX).context["preview"].changes == 3
    assert (
        'name="what" value="updates"'
        in page.content.decode().split('id="revert-several"')[1].split("</form>")[0]
    )


def test_a_change_page_shows_all_changes_of_its_request(visit, mistake):
    max_ = visit("max")
    shown = next(it for it in entries(max_.get(PAGE)) if it.change and it.change.request == REQUESTS[2])
    page = max_.get(shown.address).content.decode()
    assert page.count('class="entity-change"') == 5
    assert REQUESTS[2] in page and "curl" in page and "10.0.0.1" in page
    text = " ".join(strip_tags(page.split("changed</span>")[1]).split())
    assert text.startswith("p / a Undo only this… Name Before After N 32 1 32 2")
    assert "Undo only" not in visit("victor").get(shown.address).content.decode()
    for wrong in (
        "",
        "?request=x&table=people",
        f"?request={REQUESTS[9]}&table=people",
        f"?request={REQUESTS[2]}",
    ):
        assert max_.get(f"{PAGE}changes/{wrong}").status_code == 404


def test_histogram(visit, account, mistake):
    now = changes.page(account, ChangeFilter()).entries[0].latest
    asked = {"how": "sas", "span": "hour"}
    victor = visit("victor")
    page = victor.get(f"{PAGE}histogram/", asked)
    assert "5 changes" in " ".join(strip_tags(page.content.decode()).split())
    bars = page.context["chart"].bars
    assert (len(bars), sum(it.bucket.total for it in bars)) == (60, 5)
    assert not any(it.is_selected for it in bars)
    [bar] = [it for it in bars if it.bucket.total]
    assert [(it.kind, it.height) for it in bar.parts] == [("changes", 40)]
    selected = victor.get(f"{PAGE}histogram/", {**asked, "since": bar.since, "until": bar.until})
    assert [it.since for it in selected.context["chart"].bars if it.is_selected] == [bar.since]
    assert selected.context["chart"].total == 5
    shown = entries(victor.get(PAGE, {"since": bar.since, "until": bar.until, "how": "sas"}))
    assert [it.change.request for it in shown if it.change] == [REQUESTS[2]]
    earlier = (now - timedelta(days=2)).isoformat()
    assert entries(victor.get(PAGE, {"until": earlier})) == []


def test_the_preview_of_an_undo(visit, mistake):
    max_ = visit("max")
    page = max_.get(REVERT, {"how": "sas"})
    assert [(name, number) for name, _label, number, _samples in page.context["groups"]] == [
        ("changed", 2),
        ("inserted", 1),
        ("deleted", 1),
        ("skipped", 1),
    ]
    text = " ".join(strip_tags(page.content.decode()).split())
    assert "Undo 4 changes" in text and "1 entity was changed again and is skipped" in text
    assert "p / c Changed again by key1 on" in text
    assert content(mistake) == {"a": 2, "b": 2, "c": 3, "e": 2}
    part = max_.get(REVERT, {"request": REQUESTS[2:4]}, headers=HTMX)
    assert part.content.lstrip().startswith(b'<section class="revert"')
    assert [label for _value, label in part.context["callers"]] == [
        "Nightly <import> (SAS token)",
        "key1 (Account key)",
    ]
    only = max_.get(REVERT, {"request": REQUESTS[2:4], "by": "key:key1"})
    assert only.context["preview"].changes == 1


def test_an_undo_skips_changes_after_its_preview(visit, mistake):
    client = visit("max")
    page = client.get(REVERT, {"since": "2020-01-01"})
    write(mistake, actor(4), upsert("z", 1))
    client.post(page.context["address"])
    assert content(mistake) == {"z": 1}


def test_token_labels_are_suggested_to_users_who_may_see_them(visit, table):
    offered = {name: visit(name).get(PAGE).context["callers"] for name in ("max", "victor")}
    assert set(offered["max"]) - set(offered["victor"]) == {"Nightly <import>"}


def test_an_undo_refuses_unreadable_conditions(visit, mistake):
    before = content(mistake)
    client = visit("max")
    for asked in [
        {"since": "2020-01-01", "until": "yesterday"},
        {"since": "10 o'clock", "until": "2100-01-01"},
        {"since": "2020-01-01", "by": "key1"},
        {"since": "2020-01-01", "request": "1"},
        {"since": "2020-01-01", "what": "updated"},
    ]:
        for method in ("get", "post"):
            answer = getattr(client, method)(REVERT, query_params=asked)
            assert (answer.status_code, answer["Location"]) == (302, PAGE), asked
        assert content(mistake) == before, asked


def test_undo_and_undo_again(visit, account, mistake):
    client = visit("max")
    answer = client.post(f"{REVERT}?how=sas", {"next": f"{PAGE}?how=sas"})
    assert (answer.status_code, answer["Location"]) == (302, f"{PAGE}?how=sas")
    assert content(mistake) == {"a": 1, "b": 1, "c": 3, "d": 1}
    done = Activity.objects.get(verb=HistoryVerb.REVERT)
    page = client.get(PAGE)
    assert said(page)[0] == "max undid changes to 4 entities in people"
    # its changes are not listed once more
    assert said(page)[1] == "A client using key1 changed p / c in people"
    text = " ".join(strip_tags(page.content.decode()).split())
    assert "Undid changes to 4 entities. 1 entity was skipped because it was changed again." in text
    details = client.get(f"{PAGE}{done.pk}/").content.decode()
    assert details.count('class="entity-change"') == 4

    client.post(f"/ui/undo/{done.pk}/")
    assert content(mistake) == {"a": 2, "b": 2, "c": 3, "e": 2}


def test_undo_of_one_and_of_nothing(visit, account, mistake):
    client = visit("max")
    shown = next(it for it in entries(client.get(PAGE)) if it.change and it.change.request == REQUESTS[2])
    page = client.get(shown.address).content.decode()
    number = page.split("&number=")[1].split('"')[0]
    client.post(f"{REVERT}?number={number}")
    assert content(mistake) == {"a": 1, "b": 2, "c": 3, "e": 2}

    client.post(f"{REVERT}?number={number}")
    assert "Nothing was undone" in client.get(PAGE).content.decode()
    for nothing in ("", "?request=x", "?table=people", "?what=tables&who=max", "?span=hour"):
        answer = client.post(REVERT + nothing)
        assert (answer.status_code, answer["Location"]) == (302, PAGE), nothing
        assert "Filter or select the changes to undo." in client.get(PAGE).content.decode()
    assert content(mistake) == {"a": 1, "b": 2, "c": 3, "e": 2}


def test_undo_requires_a_writable_account(visit, account, mistake):
    account_settings.change(account, read_only=True)
    max_ = visit("max")
    assert b"disabled" in max_.get(f"{REVERT}?how=sas").content
    max_.post(f"{REVERT}?how=sas", {"next": "https://elsewhere.test/"})
    assert content(mistake) == {"a": 2, "b": 2, "c": 3, "e": 2}

"""Saved queries, recent queries, and addresses that are too long."""

import json
import re
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qs, quote, urlencode

import pytest
from django.utils import timezone
from django.utils.html import strip_tags

from console.grid import saved_urls
from console.grid.tokens import decode_key
from console.models import RecentQuery, SavedQuery, SavedQueryVersion, SavedUrl
from console.queries import recent, saved, saved_changes
from storage.accounts import accounts
from storage.activity import activity
from storage.models import Activity, Table
from storage.tables import tables

PEOPLE = "/ui/a/acme/t/people/"
NEW = PEOPLE + "queries/new/"
ADA = "Name eq 'Ada'"


@pytest.fixture
def filled(add_entity):
    add_entity("se", "1", Name="Ada", Age=36)
    add_entity("se", "2", Name="Grace", Age=37)
    add_entity("tr", "1", Name="O'Hara", Age=38)


def save(client, name="Adas", *, state="f=Name+eq+'Ada'", **fields):
    """Save a query by the form, as a browser does, and return the answer."""
    sent = parse_qs(state)
    values = {"name": name, "filter": sent.get("f", [""])[0], "keeps_view": "on", "state": state, **fields}
    return client.post(NEW, values)


def edit(client, slug="adas", *, seen=None, **fields):
    """Edit a shared query by the form, and return the answer."""
    result = SavedQuery.objects.filter(slug=slug, deleted_at=None).first()
    seen = seen or (saved.revision(result) if result else "")
    values = {"name": "Adas", "filter": ADA, "is_shared": "on", "seen": seen, **fields}
    sent = {name: value for name, value in values.items() if value is not None}
    return client.post(f"{PEOPLE}q/{slug}/edit/", sent)


def query(**fields):
    return SavedQuery.objects.get(deleted_at=None, **fields)


def names(answer):
    tokens = re.findall('<tr data-key="([^"]+)"', answer.content.decode())
    return [decode_key(token).row_key for token in tokens]


def text_of(answer):
    return unescape(strip_tags(answer.content.decode()))


def messages(answer):
    return [str(message) for message in answer.context["messages"]]


def test_keeps_all_of_the_grid_but_the_page(visit, filled):
    client = visit("victor")
    kept = "f=Name+eq+'Ada'&s=Name,Age&cols=PartitionKey,RowKey,Name:200&sort=-Age&top=100&view=json"
    answer = save(client, state=kept + "&tz=utc&refresh=30&exact=1&open=x&after=x")
    assert client.get(PEOPLE + "q/adas/")["Location"] == answer["Location"]
    result = client.get(answer["Location"]).context
    assert query().content.keys() == {"f", "s", "cols", "sort", "top", "view"}
    assert parse_qs(result["state"].query()) == parse_qs(kept + "&q=adas")
    assert (result["applied"].query.name, result["applied"].changed) == ("Adas", [])
    moved = client.get(f"{PEOPLE}?{kept.replace('-Age', 'Age').replace('Name,Age', 'Name')}&q=adas")
    assert [str(name) for name in moved.context["applied"].changed] == ["Selected properties", "Sort order"]
    # the viewer's columns are not a change of a query without columns
    save(client, "Plain", keeps_view="")
    shown = client.get(PEOPLE, {"f": ADA, "cols": "Name,*", "q": "plain"})
    assert shown.context["applied"].changed == []
    assert client.get(PEOPLE, {"f": ADA, "q": "nothing"}).context["applied"] is None


def test_says_what_changed_and_updates(visit, filled):
    client = visit("eve")
    save(client, is_shared="on")
    shown = client.get(PEOPLE, {"f": "Name eq 'Grace'", "top": "25", "q": "adas"})
    assert [str(name) for name in shown.context["applied"].changed] == ["Filter", "Page size"]
    form = {"state": shown.context["state"].query(), "seen": shown.context["applied"].revision}
    assert client.post(PEOPLE + "q/adas/update/", form)["Location"].endswith("&q=adas")
    assert query().content == {"f": "Name eq 'Grace'", "top": "25"}
    answer = client.post(PEOPLE + "q/adas/update/", form | {"state": "f=Age+eq+1"}, follow=True)
    assert messages(answer)[-1] == "Not saved: the query was changed in the meantime."
    assert query().content["f"] == "Name eq 'Grace'"


def test_asks_for_values(visit, filled):
    client = visit("victor")
    save(client, "Of a tenant", filter="PartitionKey eq '{{tenant}}' and Age lt {{age}}")
    address = PEOPLE + "q/of-a-tenant/"
    asked = client.get(address)
    assert asked.status_code == 200
    assert [field.label for field in asked.context["form"]] == ["tenant", "age"]
    refused = client.get(address, {"v-tenant": "se", "v-age": "37 or true"})
    assert refused.status_code == 422
    assert "v-age" in refused.context["form"].errors
    answer = client.get(address, {"v-tenant": "se", "v-age": "37"}, follow=True)
    assert names(answer) == ["1"]
    assert answer.context["applied"].changed == []
    # the values stand in the form when they are asked for again
    again = client.get(answer.context["applied"].run_address)
    assert [field.value() for field in again.context["form"]] == ["se", "37"]
    # and say no more than their places
    answer = client.get(address, {"v-tenant": "x' or Name ne 'x", "v-age": "1"}, follow=True)
    assert answer.context["state"].filter == "PartitionKey eq 'x'' or Name ne ''x' and Age lt 1"
    assert not answer.context["has_rows"]


def test_an_update_keeps_the_places_unless_the_filter_was_changed(visit, filled):
    client = visit("victor")
    save(client, "Named", filter="Name eq '{{who}}'")
    state = {"f": ADA, "p": "who:Ada", "q": "named", "top": "25"}
    shown = client.get(PEOPLE, state)
    assert not shown.context["applied"].is_filled
    form = {"state": shown.context["state"].query(), "seen": shown.context["applied"].revision}
    client.post(PEOPLE + "q/named/update/", form)
    assert query().content == {"f": "Name eq '{{who}}'", "top": "25"}
    changed = client.get(PEOPLE, state | {"f": "Name eq 'Grace'"})
    assert changed.context["applied"].is_filled
    edited = client.get(f"{PEOPLE}q/named/edit/?{changed.context['state'].query()}")
    assert edited.context["form"]["filter"].value() == "Name eq 'Grace'"
    assert "Name eq '{{who}}'" in text_of(edited)


def test_private_and_shared(visit, cast, filled):
    victor = visit("victor")
    save(victor)
    eve = visit("eve")
    assert eve.get(PEOPLE + "q/adas/").status_code == 404
    assert visit("ada").get(PEOPLE + "q/adas/").status_code == 404
    assert "adas" not in str(eve.get("/ui/a/acme/queries/").context["queries"]).lower()
    assert victor.get("/ui/a/acme/queries/").context["queries"][0][0].name == "Adas"
    # viewers cannot share queries
    assert save(victor, "Shared", is_shared="on").status_code == 403
    assert edit(victor).status_code == 403
    save(eve, "Shared", is_shared="on")
    assert victor.get(PEOPLE + "q/shared/").status_code == 302
    for what in ("edit", "update", "delete"):
        assert victor.post(f"{PEOPLE}q/shared/{what}/").status_code == 403
    # every editor changes the query, but cannot make it private
    max_ = visit("max")
    assert edit(max_, "shared", name="Ours").status_code == 303
    private = {"name": "Ours", "is_shared": None}
    assert edit(max_, "shared", **private).status_code == 403
    assert edit(eve, "shared", **private).status_code == 303
    assert max_.get(PEOPLE + "q/shared/").status_code == 404


def test_a_stale_change_is_refused(visit, filled):
    client = visit("eve")
    save(client, is_shared="on")
    first = saved.revision(query())
    answer = edit(client, name="Graces", filter="Name eq 'Grace'")
    assert answer["Location"] == "/ui/a/acme/queries/"
    for seen in (first, "1", "\0"):
        stale = edit(client, name="Late", seen=seen)
        assert stale.status_code == 409
        assert query().name == "Graces"
    again = stale.context["seen"]  # so that the second save is deliberate
    assert edit(client, name="Late", seen=again).status_code == 303
    assert query().name == "Late"


def test_a_deleted_query_is_brought_back(visit, filled):
    client = visit("eve")
    save(client, is_shared="on")
    answer = client.post(PEOPLE + "q/adas/delete/", follow=True)
    assert messages(answer)[-1] == "Deleted the query Adas."
    gone = client.get(PEOPLE + "q/adas/")
    assert gone.status_code == 404
    assert ADA in text_of(gone)
    done = Activity.objects.get(verb="query.delete")
    save(client, "Adas", is_shared="on")  # takes the address meanwhile
    client.post(f"/ui/undo/{done.pk}/")
    assert {query_row.slug for query_row in SavedQuery.objects.filter(deleted_at=None)} == {"adas", "adas-2"}
    assert query(slug="adas-2").content == {"f": ADA}
    # and the undoing is undone
    client.post(f"/ui/undo/{Activity.objects.latest('pk').pk}/")
    assert query().slug == "adas"
    record = client.get("/ui/a/acme/activity/").content.decode()
    assert "restored the query" in record
    assert "deleted the query" in record


def test_the_record_keeps_a_private_query_to_itself(visit, filled):
    client = visit("victor")
    save(client, "Secret plans", filter="Name eq 'secret'")
    client.post(PEOPLE + "q/secret-plans/delete/")
    (done,) = Activity.objects.filter(verb__startswith="query.")
    max_ = visit("max")
    record = max_.get("/ui/a/acme/activity/").content.decode()
    assert "deleted a private query for" in record
    for page in (record, max_.get("/ui/a/acme/activity/export/?format=ndjson").getvalue().decode()):
        assert "ecret" not in page
    assert max_.get(PEOPLE + "q/secret-plans/").status_code == 404
    assert visit("alice").post(f"/ui/undo/{done.pk}/").status_code == 403
    assert visit("victor").post(f"/ui/undo/{done.pk}/").status_code == 302
    assert query().name == "Secret plans"


def test_the_log_has_what_a_query_was_while_it_was_shared(visit, filled):
    client = visit("eve")
    save(client, "Secret", filter="Name eq 'secret'")
    edit(client, "secret", name="Ours")
    edit(client, "secret", name="Ours", filter="Age eq 1")
    edit(client, "secret", name="Secret again", is_shared=None)
    max_ = visit("max")
    record = max_.get("/ui/a/acme/activity/export/?format=ndjson").getvalue().decode()
    assert "Ours" in record
    assert "ecret again" not in record
    assert "'secret'" not in record
    # undoing a recorded change does not change the sharing either
    shared, _changed, kept_private = Activity.objects.filter(verb="query.change").order_by("pk")
    for done in (kept_private, shared):
        max_.post(f"/ui/undo/{done.pk}/")
        assert not query().is_shared


def add_versions(saved_query, *definitions):
    """Store versions as 1.0 has stored them."""
    for number, (name, text, is_shared) in enumerate(definitions, 1):
        content = {"name": name, "description": "", "content": {"f": text}, "is_shared": is_shared}
        SavedQueryVersion.objects.create(query=saved_query, number=number, content=content, author="eve")


def test_versions_of_1_0_can_be_downloaded(visit, account, filled):
    eve = visit("eve")
    save(eve, is_shared="on")
    save(eve, "New", is_shared="on")
    add_versions(
        query(slug="adas"), ("Geheim", "Age eq 1", False), ("Ürün", "Age eq 2", True), ("Adas", ADA, True)
    )
    add_versions(query(slug="new"), ("New", ADA, True))
    address = PEOPLE + "q/adas/versions/"
    listed = visit("victor").get("/ui/a/acme/queries/").content.decode()
    assert address in listed
    assert PEOPLE + "q/new/versions/" not in listed  # private as before
    answer = eve.get(address)
    latest, second, first = json.loads(answer.content)
    assert (latest["number"], second["name"], second["author"]) == (3, "Ürün", "eve")
    assert first["content"] == {"f": "Age eq 1"}
    assert "Ürün" in answer.content.decode()
    assert answer["Content-Disposition"] == 'attachment; filename="adas-versions.json"'
    # versions from before it was shared are for its owner only
    assert [it["number"] for it in json.loads(visit("max").get(address).content)] == [3, 2]
    assert visit("sam").get(address).status_code == 404
    tables.delete(account, "people")
    assert len(json.loads(eve.get(address).content)) == 3


def test_a_change_that_1_0_recorded_is_undone(visit, filled):
    client = visit("eve")
    save(client, is_shared="on")
    edit(client, filter="Age eq 1")
    add_versions(query(), ("Adas", ADA, True), ("Adas", "Age eq 1", True))
    changed = Activity.objects.get(verb="query.change")
    changed.pk, changed.detail = None, {**changed.detail, "version": 2}
    changed.save()
    client.post(f"/ui/undo/{changed.pk}/")
    assert query().content == {"f": ADA}


def test_later_changes_of_a_query_prevent_an_undo(visit, filled):
    client = visit("eve")
    save(client, is_shared="on")
    created = Activity.objects.get(verb="query.create")
    edit(client, filter="Age eq 1")
    changed = Activity.objects.get(verb="query.change")
    assert "changed since" in messages(client.post(f"/ui/undo/{created.pk}/", follow=True))[-1]
    client.post(f"/ui/undo/{changed.pk}/")
    assert query().content == {"f": ADA}
    assert visit("victor").post(f"/ui/undo/{changed.pk}/").status_code == 403


def test_a_restored_private_query_is_deleted_again_only_as_it_was(visit, filled):
    client = visit("victor")
    for is_changed in (False, True):
        save(client)
        client.post(PEOPLE + "q/adas/delete/")
        client.post(f"/ui/undo/{Activity.objects.latest('pk').pk}/")
        restored = Activity.objects.latest("pk")
        if is_changed:
            edit(client, filter="Age eq 1", is_shared=None)
        client.post(f"/ui/undo/{restored.pk}/")
        assert SavedQuery.objects.filter(deleted_at=None).exists() is is_changed


def test_found_where_people_look(visit, filled):
    save(visit("eve"), "Überfällige Konten", is_shared="on")
    save(visit("max"), "Überfällige privat")
    client = visit("victor")
    ((_title, hits),) = client.get("/ui/palette/", {"q": "fällige"}).context["groups"]
    assert [(str(hit.text), hit.detail) for hit in hits] == [("Überfällige Konten", "people")]
    assert 'id="sidebar-queries"' in client.get(PEOPLE).content.decode()
    menu = client.get(
        PEOPLE + "queries/menu/", headers={"HX-Current-URL": "http://x" + PEOPLE + "?f=Age+eq+1"}
    )
    assert [query_row.name for query_row, _asks in menu.context["queries"]] == ["Überfällige Konten"]
    assert menu.context["state"].filter == "Age eq 1"
    assert [
        query.name
        for query, _table, _can_change in client.get("/ui/a/acme/queries/?q=KONTEN").context["queries"]
    ] == ["Überfällige Konten"]
    assert visit("sam").get("/ui/palette/", {"q": "fällige"}).context["groups"] == []


def test_a_query_outlives_its_table_and_its_author(visit, cast, account, filled):
    eve = visit("eve")
    save(eve, "Kept", is_shared="on")
    save(eve, "Mine")
    tables.delete(account, "people")
    max_ = visit("max")
    (line,) = max_.get("/ui/a/acme/queries/").context["queries"]
    assert line[1] is None
    assert max_.get(PEOPLE + "q/kept/").status_code == 404
    cast["eve"].delete()
    saved_changes.tidy(timezone.now())
    assert query().name == "Kept"
    assert max_.post(PEOPLE + "q/kept/delete/").status_code == 303


def test_deleted_queries_are_purged_with_the_log(visit, filled, settings):
    save(visit("eve"))
    saved_changes.delete_query(query(), by=activity.command_actor())
    saved_changes.tidy(timezone.now() + timedelta(days=settings.ACTIVITY_DAYS - 1))
    assert SavedQuery.objects.count() == 1
    saved_changes.tidy(timezone.now() + timedelta(days=settings.ACTIVITY_DAYS + 1))
    assert SavedQuery.objects.count() == 0


def test_a_hostile_name_is_text_everywhere(visit, filled):
    client, name = visit("eve"), '<img src=x onerror="alert(1)"> ‮مرحبا <b>بالعالم</b>'
    text = f"Name eq '{name[:20]}' and Age eq {{{{age}}}}"
    save(client, name, description=name, filter=text, is_shared="on")
    address = f"{PEOPLE}q/{query().slug}/"
    own = [address, address + "?v-age=1", address + "versions/", address + "edit/", PEOPLE + "queries/menu/"]
    around = ["/ui/a/acme/queries/", "/ui/a/acme/activity/", f"/ui/palette/?q={quote(name[:5])}"]
    pages = [client.get(page, follow=True) for page in (*own, *around)]
    pages.append(client.post(f"{address}delete/", follow=True))
    pages.append(client.get(address))
    for page in pages:
        assert page.status_code in {200, 404}
        assert "<img src=x" not in page.content.decode()
        assert "<b>بالعالم" not in page.content.decode()


def test_refuses_invalid_queries(visit, filled):
    client = visit("victor")
    for fields in ({"name": " "}, {"name": "x" * 65}, {"filter": "Age eq"}, {"filter": "Age eq 1\0"}):
        assert save(client, **{"name": "Adas", **fields}).status_code == 422
    assert SavedQuery.objects.count() == 0


def test_a_filter_is_checked_when_it_is_saved(visit, filled):
    client = visit("victor")
    for text, told in [
        ("Timestamp ge {{now-30d}} and Age ge {{least}}", "datetime&#x27;{{now-30d}}&#x27;"),
        ("Age ge {{least}} and (", "yntax error"),
        ("Age ge {{least}} and Since ge datetime'{{day}}'", ""),
    ]:
        answer = save(client, "Adas", filter=text)
        assert answer.status_code == (422 if told else 303), (text, told)
        assert told in answer.content.decode(), (text, told)


def test_a_name_stands_for_one_query_of_a_table(visit, filled):
    eve = visit("eve")
    save(eve, "Ours", is_shared="on")
    save(visit("max"), "Mine")
    victor = visit("victor")
    assert save(victor, "OURS").status_code == 422
    assert save(victor, "Mine").status_code == 303  # private queries of other users do not count
    assert edit(eve, "ours", name="Ours").status_code == 303


def test_names_that_make_no_address_get_one(visit, filled):
    for name in ("!!!", "???", "查询", "a b"):
        save(visit("victor"), name)
    slugs = SavedQuery.objects.order_by("pk").values_list("slug", flat=True)
    assert list(slugs) == ["query", "query-2", "查询", "a-b"]


# recent queries


def ran(client):
    return [
        query.text
        for query, _address, _save_address in client.get("/ui/a/acme/queries/?tab=recent").context["queries"]
    ]


def test_keeps_what_ran_without_an_error(visit, filled):
    client = visit("victor")
    for text in (ADA, "Age eq 1", "Age eq", "", ADA):
        client.get(PEOPLE, {"f": text})
    assert ran(client) == [ADA, "Age eq 1"]
    assert ran(visit("eve")) == []
    # a grid that refreshes itself runs nothing new, and a later page is the same query
    client.get(PEOPLE, {"f": "Age eq 2"}, headers={"HX-Request": "true"})
    first = client.get(PEOPLE, {"f": "Age ge 1", "top": "25"})
    assert first.context["state"].starts == ()
    assert ran(client) == ["Age ge 1", ADA, "Age eq 1"]
    client.post("/ui/a/acme/queries/forget/")
    assert ran(client) == []


def test_keeps_fifty(visit, cast, filled):
    table = Table.objects.get(folded_name="people")
    for number in range(recent.LIMIT + 3):
        recent.record_run(cast["victor"], table, f"Age eq {number}")
    victor = visit("victor")
    assert ran(victor)[0] == "Age eq 52"
    assert len(ran(victor)) == 50
    recent.tidy(timezone.now())
    assert RecentQuery.objects.count() == 50


def test_a_query_that_ran_costs_one_statement(cast, filled, django_assert_num_queries):
    table = Table.objects.get(folded_name="people")
    for _time in range(2):
        with django_assert_num_queries(1):
            recent.record_run(cast["victor"], table, "Name eq '" + "ü" * 9_000 + "'")


# addresses that are too long


LONG = " or ".join(f"Name eq '{'n' * 30}{number}'" for number in range(80)) + " or Name eq 'Ada'"


def test_a_long_filter_gets_a_short_address(visit, filled):
    client = visit("victor")
    answer = client.get(PEOPLE, {"f": LONG, "top": "25"})
    assert answer.status_code == 302
    short = answer["Location"]
    assert short.startswith(PEOPLE + "?k=")
    assert len(short) < 100
    shown = client.get(short)
    assert shown.context["state"].filter == LONG
    assert names(shown) == ["1"]
    # the same query gets the same address, which other users may open
    assert client.get(PEOPLE, {"f": LONG, "top": "25"})["Location"] == short
    assert SavedUrl.objects.count() == 1
    assert names(visit("eve").get(short)) == ["1"]


def test_every_link_of_the_page_keeps_it(visit, add_entity):
    for number in range(30):
        add_entity("p", f"{number:02}", Name="Ada")
    client = visit("victor")
    shown = client.get(client.get(PEOPLE, {"f": LONG, "top": "25", "tz": "utc"})["Location"])
    links = {name: shown.context[name] for name in ("here", "next", "times", "all")}
    links |= {str(view): address for view, address, _is_current in shown.context["views"]}
    for name, address in links.items():
        assert "?k=" in address, name
        assert len(address) < 300, name
    following = client.get(links["next"])
    assert (following.status_code, len(names(following))) == (200, 5)
    assert client.get(following.context["previous"]).context["state"].starts == ()
    assert client.get(links["json"]).context["state"].view == "json"
    assert not client.get(links["times"]).context["state"].is_utc
    assert client.get(links["all"]).context["state"].filter == ""
    state = shown.context["state"].query()
    for page in (links["next"], f"{PEOPLE}columns/?{state}", f"{PEOPLE}export/?{state}"):
        assert client.get(page).context["state"].filter == LONG
    counted = client.get(f"{PEOPLE}count/?{state}", headers={"HX-Request": "true"})
    assert counted.context["total"].number == 30
    # a query that is long is saved as it is
    client.post(NEW, {"name": "Long", "filter": LONG, "state": state, "keeps_view": "on"})
    applied = client.get(PEOPLE + "q/long/", follow=True).context["applied"]
    assert (applied.query.name, applied.changed) == ("Long", [])


def test_a_saved_address_opens_only_for_users_with_access(visit, cast, account, filled):
    tables.create(account, "carts")
    victor = visit("victor")
    short = victor.get(PEOPLE, {"f": LONG})["Location"]
    key = short.partition("?")[2]
    assert visit("sam").get(short).status_code == 404
    assert visit(None).get(short).status_code == 302
    elsewhere = victor.get(f"/ui/a/acme/t/carts/?{key}")
    assert elsewhere.status_code == 404
    assert "nnnn" not in elsewhere.content.decode()
    other = accounts.add("other")
    tables.create(other, "people")
    assert "nnnn" not in visit("ada").get(f"/ui/a/other/t/people/?{key}").content.decode()
    for address in ("?k=" + "0" * 24, "?k=", "?k=%00"):
        answer = victor.get(PEOPLE + address)
        assert (answer.status_code, "grid" in answer.context) == (404, False)


def test_addresses_unused_for_half_a_year_are_deleted(visit, filled):
    client = visit("victor")
    short = client.get(PEOPLE, {"f": LONG})["Location"]
    SavedUrl.objects.update(used_at=timezone.now() - timedelta(days=179))
    assert client.get(short).status_code == 200  # and so it is used again
    saved_urls.tidy(timezone.now() + timedelta(days=179))
    assert client.get(short).status_code == 200
    saved_urls.tidy(timezone.now() + timedelta(days=181))
    gone = client.get(short)
    assert gone.status_code == 404
    assert "This link has expired" in gone.content.decode()


def test_a_long_key_is_kept_with_its_page(visit, add_entity):
    for number in range(26):
        add_entity("p" * 700, f"{number:02}" + "ü" * 400, Name="Ada")
    client = visit("victor")
    first = client.get(PEOPLE, {"top": "25"})
    answer = client.get(first.context["next"])
    assert answer.status_code == 302
    assert len(answer["Location"]) < 100
    assert len(names(client.get(answer["Location"]))) == 1


@pytest.mark.parametrize("text", ["\0../", "../{{" + "a" * 3000])
def test_takes_any_text_for_what_it_is(visit, filled, text):
    client = visit("victor")
    save(client)
    sent = dict.fromkeys(("f", "cols", "s", "q", "p", "k", "sort", "v-x", "ask"), text)
    for path in ("q/", "q/{}/", "q/{}/edit/", "q/{}/versions/", "queries/new/", "queries/menu/"):
        assert client.get(PEOPLE + path.format(quote(text, safe="")), sent).status_code in {200, 302, 404}
    assert client.get(PEOPLE, {"f": ADA, "q": text, "p": text}, follow=True).status_code == 200
    assert client.get("/ui/a/acme/queries/", {"q": text}).status_code == 200
    state = urlencode(dict.fromkeys(("cols", "s", "sort", "view", "top", "p"), text))
    answer = save(client, f"x{text}"[:64], state=state, filter=ADA, description=text[:2000])
    assert answer.status_code in {303, 422}
    for what in ("edit", "update", "delete"):
        sent = dict.fromkeys(("state", "seen", "name", "filter", "next"), text)
        status = client.post(f"{PEOPLE}q/adas/{what}/", sent).status_code
        assert status in {303, 404, 409, 422}, what


def test_values_are_asked_for_by_a_tick(visit, filled):
    client, text = visit("victor"), "PartitionKey eq 'se' and Age lt 37"
    choices = client.get(NEW, {"f": text}).context["form"].fields["ask"].choices
    assert choices == [("PartitionKey", "PartitionKey <b>&#x27;se&#x27;</b>"), ("Age", "Age <b>37</b>")]
    assert len(client.get(NEW, {"f": LONG}).context["form"]["ask"]) == 12  # at most
    refused = save(client, "", filter=text, ask=["PartitionKey", "Gone"])
    assert [box.data["selected"] for box in refused.context["form"]["ask"]] == [True, False]
    answer = save(client, "Of one", filter=text, ask=["PartitionKey", "Gone"])
    shown = client.get(answer["Location"]).context
    assert shown["state"].filter == text
    assert (shown["state"].values, shown["applied"].changed) == ((("PartitionKey", "se"),), [])
    assert query().content["f"] == "PartitionKey eq '{{PartitionKey}}' and Age lt 37"
    # a value that fits no more is asked for
    other = save(client, "Other", state="f=Age+eq+1&p=who:x+y", filter="Age eq {{who}}")
    assert other["Location"] == PEOPLE + "q/other/"

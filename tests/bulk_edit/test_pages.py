"""The page of a bulk edit: its address is all of it, it says what would be done, and Run starts the job."""

import json
import re
import shlex
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from console.grid.tokens import encode_key
from console.snippets import write_api_calls
from storage.accounts import account_settings
from storage.bulk_edit import bulk_edits
from storage.domain.entities.entity import EntityKey
from storage.models import Activity, Job
from storage.runtime import job_runner
from storage.tables import tables
from tests.bulk_edit.test_operations import content, edit, request, set_
from tests.console import markup
from tests.console.forms import fields_of

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/ui/a/acme/t/people/bulk/"
HTMX = {"HX-Request": "true"}
INCREMENT = {"f": "N ge 1", "0-op": "set", "0-property": "N", "0-expression": "N + 1"}


@pytest.fixture
def rows(add_entity, account):
    """Add three entities that can be incremented, and one that cannot."""
    for row_key, value in (("a", 1), ("b", 2), ("c", 2**31 - 1), ("<b>", 0)):
        add_entity("p", row_key, N=value)
    return lambda: content(tables.get(account, "people"))


def ask(client, do, **fields):
    return client.post(PAGE, INCREMENT | fields | {"do": do}, headers=HTMX)


def test_the_address_is_the_whole_form(visit, rows):
    eve = visit("eve")
    fields = INCREMENT | {
        "1-op": "rename", "1-property": "N", "1-to": "M", "1-replace": "1", "2-op": "key", "2-row_key": "'n-' + RowKey",
        "loss": "1",
    }  # fmt: skip
    page = eve.get(PAGE, fields)
    sent = fields_of(page, "bulk-edit")
    assert fields.items() <= sent.items()
    assert 'value="rename" selected' in markup.text(page)
    answer = eve.post(PAGE, sent | {"do": "preview"}, headers=HTMX)
    address = urlsplit(answer["HX-Replace-Url"])
    assert {name: value for name, [value] in parse_qs(address.query).items()} == fields
    long = sent | {"0-expression": "N + " * 600 + "1"}
    short = eve.post(PAGE, long | {"do": "preview"}, headers=HTMX)["HX-Replace-Url"]
    assert len(short) < 100
    assert fields_of(eve.get(short), "bulk-edit")["0-expression"] == long["0-expression"]


def test_operations_are_added_moved_and_removed(visit, rows):
    eve = visit("eve")
    second = {"1-op": "remove", "1-property": "Old"}

    def query(answer):
        return {name: value for name, [value] in parse_qs(urlsplit(answer["HX-Replace-Url"]).query).items()}

    moved = ask(eve, "up:1", **second)
    assert query(moved) == {
        "f": "N ge 1", "0-op": "remove", "0-property": "Old", "1-op": "set", "1-property": "N", "1-expression": "N + 1",
    }  # fmt: skip
    assert re.search(r'id="operation-0-down"[^>]* autofocus', markup.text(moved))
    assert query(ask(eve, "down:0", **second)) == query(moved)
    assert query(ask(eve, "remove:1", **second)) == INCREMENT
    assert query(ask(eve, "remove:0")) == INCREMENT
    assert query(ask(eve, "add"))["1-op"] == "set"
    without_script = eve.post(PAGE, INCREMENT | {"do": "remove:9"})
    assert without_script["Location"] == f"{PAGE}?{urlencode(INCREMENT)}"


def test_says_what_it_would_do(visit, rows):
    eve = visit("eve")
    shown = markup.text(ask(eve, "preview"))
    for part in (
        "<b>2</b><span>will change</span>",
        "<b>1</b><span>skipped</span>",
        "Skipped: N: the result is out of range: Int32.",
        '<del class="mono">1</del>→<ins class="mono">2</ins>',
        "Edit 2 entities",
        "3 entities",
        "curl -X POST &#x27;http://testserver/ui/api/v1/accounts/acme/tables/people/bulk-edit&#x27;",
    ):
        assert part in shown, (part, shown)
    assert rows()["a"] == 1
    lossy = markup.text(ask(eve, "preview", **{"f": "RowKey eq '<b>'", "0-expression": "int32(0.5)"}))
    assert "Skipped: Converting N would drop the digits after the decimal point." in lossy
    assert "disabled" in lossy.partition('id="bulk-run-button"')[2][:40]
    assert 'value="allow-loss">Allow lossy conversions</button>' in lossy
    assert (
        eve.post(PAGE, INCREMENT | {"do": "allow-loss"})["Location"]
        == f"{PAGE}?{urlencode(INCREMENT)}&loss=1"
    )
    lossy = markup.text(
        ask(eve, "preview", **{"f": "RowKey eq '<b>'", "0-expression": "int32(1.5)", "loss": "1"})
    )
    assert "<span>Converting N would drop the digits after the decimal point.</span>" in lossy
    retyped = markup.text(ask(eve, "preview", **{"0-expression": "string(N)"}))
    assert "Int32 → String" in retyped
    moved = markup.text(ask(eve, "preview", **{"0-op": "key", "0-row_key": "'x'"}))
    assert "Skipped: Another entity has the new key." in moved and "<b>1</b><span>get another key" in moved
    deleted = markup.text(ask(eve, "preview", **{"0-op": "delete", "f": ""}))
    assert "You can undo this for 7 days." in deleted
    assert "Delete 4 entities" in deleted and '<del class="mono">1</del>' in deleted


def test_a_job_examines_what_is_too_much_while_typing(visit, rows, monkeypatch):
    eve = visit("eve")
    monkeypatch.setattr("console.bulk_edit.views._WHILE_TYPING", bulk_edits.COUNT_LIMIT * 0)
    shown = markup.text(ask(eve, "preview"))
    assert "These numbers are of the first 0 entities." in shown and "Edit up to 3 entities" in shown
    begun = ask(eve, "examine").content.decode()
    [job] = re.findall(r'"job": "(\d+)"', begun)
    assert ask(eve, "follow", job=job).status_code == 204
    job_runner.run_all()
    shown = markup.text(ask(eve, "follow", job=job))
    assert "Edit 2 entities" in shown and "bulk-more" not in shown and 'name="read_at"' in shown
    assert ask(eve, "follow", job=job, **{"0-expression": "N + 2"}).status_code == 204
    refused = ask(eve, "examine", **{"0-expression": "uper(N)"})
    assert refused["HX-Retarget"] == "#bulk-preview" and "Did you mean upper?" in markup.text(refused)
    assert eve.post(PAGE, INCREMENT | {"do": "examine"})["Location"] == f"/ui/jobs/{int(job) + 1}/"
    assert "3 entities" in markup.text(ask(eve, "preview", **{"0-expression": ""}))


def test_errors_are_marked_at_their_position(visit, rows):
    eve = visit("eve")
    shown = markup.text(ask(eve, "preview", **{"0-expression": "N + uper(N)"}))
    assert 'data-problem="0-expression"data-from="4"data-to="8"' in shown.replace(" data", "data")
    assert "Did you mean upper?" in shown
    begun = markup.text(ask(eve, "preview", **{"0-expression": ""}))
    assert "Complete the operations" in begun and "data-problem" not in begun
    assert "the filter ends where a property or value is expected" in markup.text(
        ask(eve, "preview", f="N ge")
    )
    refused = eve.post(PAGE, INCREMENT | {"0-expression": "", "do": "run"})
    assert refused.status_code == 422 and b"Complete the operations first." in refused.content
    assert not Job.objects.exists()


def test_run_leads_to_the_job_and_its_undo(visit, rows):
    eve = visit("eve")
    form = ask(eve, "preview").content.decode()
    read_at = form.partition('name="read_at" value="')[2].partition('"')[0]
    answer = eve.post(PAGE, INCREMENT | {"read_at": read_at, "do": "run"})
    job = Job.objects.get()
    assert answer["Location"] == f"/ui/jobs/{job.pk}/"
    job_runner.run_all()
    assert rows() == {"<b>": 0, "a": 2, "b": 3, "c": 2**31 - 1}
    page = markup.text(eve.get(answer["Location"]))
    assert "N: the result is out of range: Int32." in page
    operations = page.partition('id="job-operations"')[2].partition("</section>")[0]
    assert '<code dir="ltr">N ge 1</code>' in operations and ">Set a property" in operations
    assert '<code dir="ltr">N = N + 1</code>' in operations
    assert '<a href="/ui/a/acme/t/people/entity/?pk=p&amp;rk=c">p, c</a>' in page
    done = Activity.objects.get(verb="entity.bulk-edit")
    assert f'action="/ui/undo/{done.pk}/"' in page and "You can undo this for 7 days." in page
    eve.post(f"/ui/undo/{done.pk}/", {"next": answer["Location"]})
    assert rows()["a"] == 1
    shown = eve.get(answer["Location"]).content.decode().partition('id="toasts"')[0]
    assert "/ui/undo/" not in shown and "undone" in shown
    assert "changed 2 · skipped 1" in markup.text(eve.get("/ui/jobs/"))
    redo = Activity.objects.latest("pk")
    eve.post(f"/ui/undo/{redo.pk}/")
    assert "undone" not in eve.get(answer["Location"]).content.decode().partition('id="toasts"')[0]


COPY = {
    "f": "N ge 1", "0-op": "set", "0-property": "M", "0-expression": "N",
    "1-op": "second-copy", "1-row_key": "'n-' + string(N)", "1-table": "numbers",
}  # fmt: skip
REPAIR = {"1-replace": "1", "1-delete_left_over": "1"}


def test_second_copies_are_made_checked_and_repaired(visit, rows, account):
    max_ = visit("max")
    fields = COPY | REPAIR | {"1-partition_key": "'q'", "1-copies": "RowKey ge 'n'"}
    assert fields.items() <= fields_of(max_.get(PAGE, fields), "bulk-edit").items()

    def preview(**more):
        return markup.text(max_.post(PAGE, COPY | more | {"do": "preview"}, headers=HTMX))

    shown = preview()
    assert "<b>3</b><span>will be copied</span>" in shown and "Write 3 copies" in shown
    assert '<ins class="mono"><bdi>p</bdi>/<bdi>n-1</bdi></ins>' in shown
    begun = markup.text(
        max_.post(PAGE, COPY | {"1-row_key": "", "1-table": "", "do": "preview"}, headers=HTMX)
    )
    assert "Complete the operations" in begun
    refused = visit("eve").post(PAGE, COPY | {"do": "run"})
    assert refused.status_code == 403 and not Job.objects.exists()
    job_page = max_.post(PAGE, COPY | {"do": "run"})["Location"]
    job_runner.run_all()
    numbers = tables.get(account, "numbers")
    assert content(numbers) == {"n-1": 1, "n-2": 2, f"n-{2**31 - 1}": 2**31 - 1}
    assert "copied 3" in markup.text(max_.get("/ui/jobs/"))

    # a check is the address of the edit that repairs
    checked = max_.post(PAGE, COPY | {"do": "check"})["Location"]
    assert checked == f"{PAGE}?{urlencode(COPY | REPAIR)}"
    assert "In step: each original has an up-to-date copy" in preview(**REPAIR)
    edit(tables.get(account, "people"), request(set_("7"), filter="RowKey eq 'a'"))
    shown = preview(**REPAIR)
    assert "Out of step. Run the edit to repair the copies." in shown and "Repair 2 copies" in shown
    assert "<b>1</b><span>left over: will be deleted</span>" in shown
    done = Activity.objects.get(verb="entity.second-copy")
    activity_page = max_.get(f"/ui/a/acme/activity/{done.pk}/")
    assert "wrote second copies of 3 entities of" in markup.text(activity_page)
    for page in (activity_page, max_.get(job_page)):
        assert f'href="{checked.replace("&", "&amp;")}"' in page.content.decode()
    assert "Check copies" not in visit("victor").get(f"/ui/a/acme/activity/{done.pk}/").content.decode()
    max_.post(PAGE, COPY | REPAIR | {"do": "run"})
    job_runner.run_all()
    assert content(numbers) == {"n-2": 2, "n-7": 7, f"n-{2**31 - 1}": 2**31 - 1}
    assert "left over and deleted 1" in markup.text(max_.get("/ui/jobs/"))


def test_originals_are_protected_and_keys_collide(visit, rows):
    eve = visit("eve")
    op = {"0-op": "second-copy", "0-row_key": "'b'"}
    shown = markup.text(ask(eve, "preview", **op, **{"0-replace": "1"}))
    assert "Skipped: The entity with the new key is an original: the query finds it as well." in shown
    shown = markup.text(ask(eve, "preview", **op | {"0-row_key": "'x'"}))
    assert "Skipped: The second copy of another entity has the same key." in shown


def test_a_protected_account_asks_for_the_number(visit, rows, account, monkeypatch):
    account_settings.change(account, protected=True)
    eve = visit("eve")
    assert 'type<b class="mono">3</b>to confirm' in markup.text(ask(eve, "preview"))
    refused = eve.post(PAGE, INCREMENT | {"do": "run"})
    assert "is protected. Type the number of entities" in refused.content.decode()
    refused = eve.post(PAGE, INCREMENT | {"do": "run", "number": "4"})
    assert "finds 3 entities now, not 4" in refused.content.decode()
    assert eve.post(PAGE, INCREMENT | {"do": "run", "number": "3"}).status_code == 302
    monkeypatch.setattr("console.bulk_edit.views._WHILE_TYPING", bulk_edits.COUNT_LIMIT * 0)
    shown = markup.text(ask(eve, "preview"))
    assert "These numbers are of the first 0 entities." in shown and "Edit 3 entities" not in shown


def test_the_code_is_valid_whatever_is_in_it():
    body = {"filter": "A eq '\u2028\"'", "operations": [{"op": "delete"}], "allow_loss": False}
    python, javascript, curl = (it.code for it in write_api_calls("http://localhost/'", body))
    names = {}
    exec(python.partition("request = ")[0], names)
    assert names["body"] == body
    assert json.loads(javascript.partition(" = ")[2].partition(";\nconst")[0]) == body
    words = shlex.split(curl.replace("\\\n", " "))
    assert (words[3], json.loads(words[-1])) == ("http://localhost/'", body)


def test_a_selection_leads_to_it(visit, rows):
    eve = visit("eve")
    keys = [encode_key(EntityKey("p", it)) for it in ("b", "a")]
    answer = eve.post(PAGE, {"scope": "rows", "key": keys, "f": "N ge 1"})
    [filter_text] = parse_qs(urlsplit(answer["Location"]).query)["f"]
    assert filter_text == "PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'b')"
    assert (
        eve.post(PAGE, {"scope": "query", "f": "N ge 1"})["Location"]
        == f"{PAGE}?f=N+ge+1&0-op=set&0-property=&0-expression="
    )
    palette = eve.get("/ui/palette/", {"q": "bulk", "in": "acme", "table": "people"})
    assert PAGE in palette.content.decode()
    other = eve.get("/ui/palette/", {"q": "bulk", "in": "acme", "table": "a/b"})
    assert other.status_code == 200 and b"/bulk/" not in other.content
    victor = visit("victor")
    assert PAGE not in victor.get("/ui/a/acme/t/people/").content.decode()
    assert f"{PAGE}?f=N+ge+1" in eve.get("/ui/a/acme/t/people/", {"f": "N ge 1"}).content.decode()


def test_an_expression_is_refused_in_the_language_of_its_reader(visit, rows):
    eve = visit("eve")
    for language, text in [
        ("en", "There is no function uper (position 1). Did you mean upper?"),
        ("tr", "uper adlı bir işlev yok (konum 1). upper mi demek istediniz?"),
        ("zh-hans", "没有函数 uper（位置 1）。是否要用 upper？"),
    ]:
        eve.cookies["tablero_language"] = language
        assert text in ask(eve, "preview", **{"0-expression": "uper(N)"}).content.decode(), language


def test_a_malformed_filter_beside_a_malformed_operation_is_explained(visit, rows):
    answer = ask(visit("eve"), "preview", f="N ge \x1a", **{"0-expression": "N +"})
    assert answer.status_code == 200 and "Write strings in single quotes." in markup.text(answer)

"""Imports in the console: from a file to entities, with repairs of rejected rows, and permissions."""

import gzip
import io
import json
import re
from datetime import date

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from console.transfer import column_part, encodings
from storage.accounts import account_settings
from storage.domain.access.actor import SERVER
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm
from storage.editing import typed_text
from storage.entities import entities
from storage.models import ImportDraft, Job, JobFile
from storage.runtime import job_runner
from storage.tables import tables
from storage.tabular.encodings import ENCODINGS
from storage.transfer import import_jobs
from tests.console.markup import text
from tests.tabular import spreadsheets

pytestmark = pytest.mark.django_db(transaction=True)  # a job saves its steps when they are committed

START = "/ui/a/acme/t/staff/import/"
TEXT = "country,id,age,note\nse,1,36,x\ntr,2,n/a,\nse,3,41,y\n" + "".join(
    f"de,{number},50,z\n" for number in range(4, 30)
)
COLUMNS = {"partition_key": "{country}", "row_key": "{id}", "target:2": "Age", "type:2": "Edm.Int32"}


@pytest.fixture
def staff(account):
    return tables.create(account, "staff")


def count(table):
    return sum(len(page) for page in entities.all_pages(table, EntityQuery()))


def begin(browser, text=TEXT, address=START, **more):
    answer = browser.post(address, {"text": text, **more})
    assert answer.status_code == 302, answer.content.decode()
    return answer["Location"]


def test_from_pasted_rows_to_entities_with_a_repair(visit, staff):
    eve = visit("eve")
    columns = begin(eve)
    page = eve.get(columns).content.decode()
    assert "semicolon" not in page and 'name="read_as"' not in page
    assert "mixed: 28 numbers, 1 text" in page  # the ages
    assert visit("max").get(columns).status_code == 404
    refused = eve.post(columns, {"check": "1", **COLUMNS, "row_key": "{nothing}"})
    assert refused.status_code == 422
    assert "The file has no column nothing" in refused.content.decode()

    answer = eve.post(columns, {"check": "1", "mode": "merge", **COLUMNS})
    check = answer["Location"]
    assert "every 1s" in eve.get(check).content.decode()
    job_runner.run_all()
    page = eve.get(check).content.decode()
    assert "1 value of age isn&#x27;t a whole number." in page and "Import 28 rows" in page
    [file] = JobFile.objects.filter(is_result=True)
    assert f"/files/{file.pk}/" in page
    repair, asked = check.replace("check", "repair"), {"group": "0", "how": "unset"}
    assert eve.post(repair, {**asked, "check": "0"}).status_code == 404  # an earlier check
    again = eve.post(repair, {**asked, "check": ImportDraft.objects.get().check_job_id})
    assert again["Location"] == check
    job_runner.run_all()
    assert "Import 29 rows" in eve.get(check).content.decode()

    assert Job.objects.count() == 1  # the check that was replaced is gone
    run = check.replace("check", "run")
    eve.post(columns, {**COLUMNS, "mode": "skip"})
    assert eve.post(run)["Location"] == check  # changed data is checked first
    assert eve.get(check)["Location"] == columns
    eve.post(columns, {"check": "1", "mode": "merge", **COLUMNS})
    job_runner.run_all()
    assert eve.post(run)["Location"] == run
    eve.post(run)  # pressed twice
    job_runner.run_all()
    page = eve.get(run).content.decode()
    assert "Undo" in page
    assert (count(staff), Job.objects.filter(kind="entity.import").count()) == (29, 1)
    assert eve.get(columns)["Location"] == run

    kept = eve.get(begin(eve)).content.decode()
    assert "The mapping of the last import into this table is used." in kept
    assert 'value="{country}"' in kept and 'value="Age"' in kept


def test_the_check_says_what_else_of_the_file_is_not_in_the_table(visit, staff):
    eve = visit("eve")
    text = (
        "rowkey,RowKey,PartitionKey,Timestamp,,a b,n,n@type\nx,1,p,2026-11-28,y,z,5,Int32\n"
        + ",,,,,,,\n" * 12
    )
    columns = begin(eve, text)
    check = eve.post(columns, {"check": "1", "partition_key": "{PartitionKey}", "row_key": "{RowKey}"})[
        "Location"
    ]
    job_runner.run_all()
    page = eve.get(check).content.decode()
    report = page[page.index("report-title") :].partition("</section>")[0]
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", report))
    for line in (
        "Blank rows, skipped 12", "Renamed a b → a_b", "Used as the types of other columns n@type",
        "Left out: set by the service Timestamp", "Named by position: the column has no name column5",
    ):  # fmt: skip
        assert line in shown
    assert (
        "report-title"
        not in eve.get(eve.post(begin(eve), {"check": "1", **COLUMNS})["Location"]).content.decode()
    )


def test_a_wrong_type_of_a_column_is_repaired_by_the_format_of_its_values(visit, staff):
    eve = visit("eve")
    columns = begin(eve, GERMAN)
    form = {**form_of(eve.get(columns)), "type:2": "Edm.Double", "type:3": "Edm.DateTime", "check": "1"}
    check = eve.post(columns, form)["Location"]
    job_runner.run_all()
    page = eve.get(check)
    columns_at_fault = [view.group.column for view in page.context["groups"]]
    number = columns_at_fault.index("Betrag")
    amounts = page.context["groups"][number]
    assert amounts.sentence == "25 values of Betrag aren't numbers (decimal comma?)"
    assert dict(amounts.repairs)["decimal-comma"] == "Read as numbers with a decimal comma"
    asked = {"group": number, "how": "decimal-comma", "check": ImportDraft.objects.get().check_job_id}
    eve.post(check.replace("check", "repair"), asked)
    job_runner.run_all()
    [group] = eve.get(check).context["groups"]
    assert group.sentence == "25 values of Datum aren't dates or times (day first?)"


def test_an_unfinished_import_is_continued_or_discarded(visit, staff, account):
    eve = visit("eve")
    first, second = begin(eve), begin_with(eve, TEXT.encode(), "people.csv")
    page = eve.get(START).content.decode()
    assert f'href="{first}"' in page and f'href="{second}"' in page and "people.csv" in page
    unfinished = {"name": "x", "size": "9"}
    eve.post(START, unfinished, headers={"Accept": "application/json"})
    assert len(eve.get(START).context["drafts"]) == 2  # an upload continues where the file is chosen again
    assert visit("max").get(START).context["drafts"] == []
    alice = visit("alice")
    assert alice.get("/ui/a/acme/import/").context["drafts"] == []

    eve.post(first, {"check": "1", **COLUMNS})
    assert eve.post(first.replace("columns", "discard"))["Location"] == START
    assert [it.file_name for it in eve.get(START).context["drafts"]] == ["people.csv"]
    assert eve.get(first).status_code == 404
    job_runner.run_all()
    assert not Job.objects.filter(status="done").exists()
    assert JobFile.objects.filter(is_complete=True).count() == 1

    check = eve.post(second, {"check": "1", **COLUMNS, "mode": "merge"})["Location"]
    job_runner.run_all()
    eve.post(check.replace("check", "run"))
    assert eve.get(START).context["drafts"] == []
    eve.post(second.replace("columns", "discard"))  # too late
    assert (
        Job.objects.filter(kind="entity.import").exists()
        and ImportDraft.objects.filter(job=None).count() == 1
    )


def test_types_of_the_file_are_named(visit, staff):
    eve = visit("eve")
    page = eve.get(
        begin(eve, "PartitionKey,RowKey,n,n@type\np,1,5,Int32\np,2,6,Edm.Int32\n")
    ).content.decode()
    assert "Int32, from the file" in page
    rows = '{"PartitionKey":"p","RowKey":"%d","n":%s}\n'
    page = eve.get(begin(eve, rows % (1, "1.5") + rows % (2, "2.5"))).content.decode()
    assert "Double, from the file" in page
    page = eve.get(begin(eve, rows % (1, "true") + rows % (2, "2"))).content.decode()
    assert "as in the file" in page


def test_groups_are_repaired_one_after_the_other_while_rows_are_checked(visit, staff):
    eve = visit("eve")
    text = TEXT.replace("\n", ",1\n").replace("note,1", "note,size").replace("41,y,1", "41,y,big")
    columns = begin(eve, text)
    sizes = {"target:4": "Size", "type:4": "Edm.Int32"}
    answer = eve.post(columns, {"check": "1", "mode": "merge", **COLUMNS, **sizes})
    check = answer["Location"]
    job_runner.run_all()
    assert [it.group.column for it in eve.get(check).context["groups"]] == ["age", "size"]

    def repair():
        asked = {"group": "0", "how": "unset", "check": ImportDraft.objects.get().check_job_id}
        assert eve.post(check.replace("check", "repair"), asked).status_code == 302
        return [it.group.column for it in eve.get(check).context["groups"]]

    assert (repair(), repair()) == (["size"], [])
    progress = eve.get(check, {"progress": ""})
    assert progress.content.decode().count("<section") == 1 and "HX-Retarget" not in progress.headers
    job_runner.run_all()
    ended = eve.get(check, {"progress": ""})
    assert ended.headers["HX-Retarget"] == "#check" and "rejects-title" not in ended.content.decode()


def test_how_a_file_is_read_can_be_changed(visit, staff):
    eve = visit("eve")
    columns = begin(eve, "a|b;c\n1|2;3\n4|5;6\n")
    asked = {"reread": "1", "delimiter": ";", "header": "no"}
    page = eve.post(columns, asked, headers={"HX-Request": "true"}).content.decode()
    assert "column2" in page and "column3" not in page
    assert "The file is empty." in eve.post(START, {"text": ""}).content.decode()
    assert "The file has names of columns, but no rows." in text(eve.get(begin(eve, "a,b\n")))


def test_a_file_that_cannot_be_read_is_read_otherwise_or_discarded(visit, staff):
    eve = visit("eve")
    columns = begin(eve, "a;a\n1;2\n")
    unreadable = eve.get(columns)
    said = "The file has two columns named a. Rename one of them in the file."
    assert (unreadable.status_code, said in text(unreadable)) == (422, True)
    # only what was chosen is shown as chosen
    chosen = [unreadable.context["reading"][name] for name in ("format", "encoding", "delimiter")]
    assert chosen == [None, "", ""]
    assert unreadable.content.decode().count(">Detect</option>") == 3

    otherwise = eve.post(columns, {"reread": "1", "format": "json", "delimiter": ";"})
    reading = otherwise.context["reading"]
    assert (reading["format"], reading["delimiter"]) == ("json", ";")

    discard = columns.replace("columns", "discard")
    assert f'formaction="{discard}"' in otherwise.content.decode()
    assert eve.post(discard, {"format": "json"}).headers["Location"] == START


def test_a_file_arrives_in_pieces_and_goes_on_where_it_was(visit, account):
    alice = visit("alice")
    asked = {"table": "made", "name": "people.csv", "size": str(len(TEXT))}
    made = alice.post("/ui/a/acme/import/", asked, headers={"Accept": "application/json"}).json()

    def send(start, text):
        address = f"{made['address']}?start={start}"
        return alice.post(address, text.encode(), content_type="application/octet-stream").json()

    assert send(0, TEXT[:10])["size"] == 10
    assert send(50, TEXT[50:])["size"] == 10  # something is missing before it
    assert send(5, TEXT[5:20])["size"] == 20  # a part has arrived before
    assert alice.get(made["address"]).json() == {"size": 20, "next": ""}
    done = send(20, TEXT[20:] + "more than was announced")
    assert done["size"] == len(TEXT)
    check = alice.post(done["next"], {"check": "1", **COLUMNS})["Location"]
    job_runner.run_all()
    alice.post(check.replace("check", "run"))
    job_runner.run_all()
    assert count(tables.get(account, "made")) == 28


def test_refuses(visit, staff, account, settings):
    assert visit("victor").get(START).status_code == 403
    assert visit("eve").get("/ui/a/acme/import/").status_code == 403
    eve, json_ = visit("eve"), {"Accept": "application/json"}
    account_settings.change(account, by=SERVER, read_only=True)
    assert eve.post(START, {"text": TEXT}).status_code == 422
    account_settings.change(account, by=SERVER, read_only=False)
    settings.QUOTAS = {**settings.QUOTAS, "upload_megabyte": 1}
    large = eve.post(START, {"name": "x", "size": str(1 << 30)}, headers=json_)
    assert (large.status_code, json.loads(large.content)["error"][:17]) == (422, "Your uploads may ")
    assert visit("alice").post("/ui/a/acme/import/", {"text": TEXT, "table": "1"}).status_code == 422
    assert not ImportDraft.objects.exists()

    made = eve.post(START, {"name": "x", "size": "9"}, headers=json_).json()
    settings.QUOTAS = {**settings.QUOTAS, "upload_megabyte": 0}
    late = eve.post(f"{made['address']}?start=0", b"a,b", content_type="application/octet-stream")
    assert (late.status_code, late.json()["error"][:17]) == (422, "Your uploads may ")
    settings.QUOTAS = {**settings.QUOTAS, "upload_megabyte": 1}

    columns = begin(eve)
    tables.delete(account, "staff")
    eve.post(columns, {"check": "1", **COLUMNS})
    assert eve.post(columns.replace("columns", "run")).status_code == 403  # she may not create tables


def test_refusals_for_cost_are_explained(visit, staff, settings):
    eve = visit("eve")
    rowless = gzip.compress(TEXT.partition("\n")[0].encode() + b"\n" * 9_000_000, 1)
    columns = begin(eve, file=SimpleUploadedFile("staff.csv.gz", rowless))
    page = eve.get(columns)
    assert (page.status_code, "There is no row for a long way" in page.content.decode()) == (422, True)
    assert eve.post(columns, {"reread": "1", "delimiter": ";"}).status_code == 422
    settings.QUOTAS = {**settings.QUOTAS, "import": 1}
    checks = [eve.post(begin(eve), {"check": "1", "mode": "merge", **COLUMNS}) for _ in range(2)]
    assert [check.status_code for check in checks] == [302, 422]
    assert "You have 1 imports, checks and copies" in checks[1].content.decode()
    job_runner.run_all()
    eve.post(checks[0]["Location"].replace("check", "run"))
    later = eve.post(begin(eve), {"check": "1", "mode": "merge", **COLUMNS})
    assert later.status_code == 422


def test_a_zone_and_what_changes(visit, staff):
    """The preview shows the properties of an existing entity before and after; times of the file are in the chosen
    zone.
    """
    eve = visit("eve")
    text = "PartitionKey,RowKey,City,Since\nse,1,Köln,2026-01-15 14:30\nse,2,Oslo,2026-07-15\n"
    columns = begin(eve, text)
    page = eve.get(columns).content.decode()
    assert '<option value="Europe/Istanbul">' in page
    keys = {"partition_key": "{PartitionKey}", "row_key": "{RowKey}"}
    sent = {**keys, "target:0": "City", "type:0": "Edm.String", "target:1": "Since", "type:1": "Edm.String"}
    page = eve.post(columns, {**sent, "zone": "Europe/Istanbul"}).content.decode()
    assert '<option value="Europe/Istanbul" selected>' in page
    assert '<option value="Edm.DateTime" selected>' in page
    check = eve.post(columns, {**sent, "type:1": "Edm.DateTime", "zone": "Europe/Istanbul", "check": "1"})[
        "Location"
    ]
    job_runner.run_all()
    page = eve.get(check).content.decode()
    assert "What changes" in page and page.count("not set") == 4
    assert "2026-01-15T11:30:00" in page and "2026-07-14T21:00:00" in page
    eve.post(check.replace("check", "run"))
    job_runner.run_all()

    text = "PartitionKey,RowKey,City\nse,1,Bonn\nse,3,Rome\n"
    columns = begin(eve, text)
    kept = {**keys, "target:0": "City", "type:0": "Edm.String", "mode": "merge", "check": "1"}
    check = eve.post(columns, kept)["Location"]
    job_runner.run_all()
    page = eve.get(check).content.decode()
    assert (
        '<del class="removed"><bdi>Köln</bdi></del>' in page
        and '<ins class="added"><bdi>Bonn</bdi></ins>' in page
    )
    assert (
        page.count("not set") == 1
        and "Since" not in page.partition("What changes")[2].partition("</table>")[0]
    )

    refused = eve.post(columns, {**kept, "zone": "Europe/Nowhere"})
    assert refused.status_code == 422 and "is not a time zone" in refused.content.decode()


GERMAN = "Filiale;Beleg;Betrag;Datum;Aktiv;Rabatt;Alter\n" + "".join(
    f"{'Köln' if number % 3 else 'Bonn'};{1000 + number};1.{100 + number},50;{number + 1}.11.2026;"
    f"{'WAHR' if number % 2 else 'FALSCH'};{number} %;{number or 'n/a'}\n"
    for number in range(25)
)


def form_of(page):
    """Return the fields of the page of columns as a browser would send them."""
    context = page.context
    mapping = context["mapping"]
    fields = {"partition_key": mapping.partition_key, "row_key": mapping.row_key, "base": context["base"]}
    for column in context["columns"]:
        if not column["is_key"]:
            fields |= {
                f"target:{column['number']}": column["target"],
                f"type:{column['number']}": column["reading"],
            }
    for key in context["keys"]:
        if key.separator is not None:
            fields[f"separator:{key.name}"] = key.separator
    return {**fields, "mode": "merge", "zone": mapping.zone}


def test_numbers_dates_and_keys_are_read_with_a_press_each(visit, staff):
    eve = visit("eve")
    columns = begin(eve, GERMAN)
    page = eve.get(columns)
    text = page.content.decode()
    # the clear keys are chosen, with their reasons, and nothing else is
    assert (page.context["mapping"].partition_key, page.context["mapping"].row_key) == (
        "{Filiale}",
        "{Beleg}",
    )
    assert "Filiale repeats: 2 values · Beleg is unique" in text
    assert {it.type for it in page.context["mapping"].columns} == {Edm.STRING}
    assert "Read as numbers with a decimal comma" in text and "1.100,50" in text and "1100.50" in text
    assert "Read as percentages with a decimal comma, as fractions" in text
    assert "1 of 25 values does not fit: n/a" in text

    page = eve.post(columns, {**form_of(page), "read": "certain"})
    read = {it.source: (it.type, it.format) for it in page.context["mapping"].columns}
    assert read == {
        "Betrag": (Edm.DOUBLE, "decimal-comma"), "Datum": (Edm.DATETIME, "day-first"),
        "Aktiv": (Edm.BOOLEAN, "WAHR/FALSCH"),
        "Rabatt": (Edm.STRING, ""), "Alter": (Edm.STRING, ""),
    }  # fmt: skip
    assert "dates, day first, UTC" in page.content.decode()
    page = eve.post(columns, {**form_of(page), "read": "5 Edm.Double decimal-comma percent-as-fraction"})
    page = eve.post(columns, {**form_of(page), "read": "6 Edm.Int32"})
    assert "Values that do not fit" in page.content.decode()
    page = eve.post(columns, {**form_of(page), "misfit:6": "unset", "zone": "Europe/Berlin"})
    assert "dates, day first, Europe/Berlin" in page.content.decode()

    check = eve.post(columns, {**form_of(page), "check": "1"})["Location"]
    job_runner.run_all()
    assert "Import 25 rows" in eve.get(check).content.decode()
    eve.post(check.replace("check", "run"))
    job_runner.run_all()
    [entity] = [
        it for page in entities.all_pages(staff, EntityQuery()) for it in page if it.key.row_key == "1000"
    ]
    values = {name: typed_text.write(value) for name, value in read_stored(entity).properties.items()}
    assert values == {"Betrag": "1100.5", "Datum": "2026-10-31T23:00:00Z", "Aktiv": "false", "Rabatt": "0.0"}

    # the next file of the kind is read so, too
    page = eve.get(begin(eve, GERMAN))
    kept = {it.source: it.format for it in page.context["mapping"].columns}
    assert page.context["is_kept"] and kept["Datum"] == "day-first"


@pytest.mark.parametrize("make", spreadsheets.ALL)
def test_a_spreadsheet_is_imported_with_four_presses(visit, staff, make):
    sheet, eve = make(), visit("eve")
    columns = begin_with(eve, sheet.content, "sheet.csv")
    page = eve.post(columns, {**form_of(eve.get(columns)), "keys": "0"})
    mapping = page.context["mapping"]
    assert (mapping.partition_key, mapping.row_key) == sheet.keys
    page = eve.post(columns, {**form_of(page), "read": "certain"})
    check = eve.post(columns, {**form_of(page), "check": "1"})["Location"]
    job_runner.run_all()
    checked = eve.get(check).context["outcome"]
    assert (checked.rows, checked.inserted, checked.changed, checked.rejected) == (41, 40, 1, 0)
    assert (checked.repeated, checked.report.blank_rows) == (1, 1)
    eve.post(check.replace("check", "run"))
    job_runner.run_all()
    done = import_jobs.outcome_of(Job.objects.get(kind="entity.import"))
    assert (done.rows, done.inserted, done.changed, done.rejected) == (41, 40, 1, 0)
    stored = next(it for page in entities.all_pages(staff, EntityQuery()) for it in page)
    types = {name: value.type.short_name for name, value in read_stored(stored).properties.items()}
    expected = {name: reading.split()[0] for name, reading in sheet.readings.items()}
    assert {name: type_ for name, type_ in types.items() if type_ != "String"} == expected


def test_applied_formats_can_be_reverted(visit, staff):
    eve = visit("eve")
    columns = begin(eve, GERMAN)
    page = eve.post(columns, {**form_of(eve.get(columns)), "read": "certain"})
    page = eve.post(columns, {**form_of(page), "read": "2 Edm.String"})
    assert [it.format for it in page.context["mapping"].columns] == ["", "day-first", "WAHR/FALSCH", "", ""]
    page = eve.post(columns, {**form_of(page), "read": "certain not"})
    assert {(it.type, it.format) for it in page.context["mapping"].columns} == {(Edm.STRING, "")}
    # a value that is neither a type nor a format is ignored
    page = eve.post(columns, {**form_of(page), "type:2": "Edm.Int32 day-first", "type:3": "Edm.Double x"})
    assert [(it.type, it.format) for it in page.context["mapping"].columns][:2] == [
        (Edm.INT32, ""),
        (Edm.DOUBLE, ""),
    ]


def test_keys_are_chosen_by_pressing_or_writing(visit, staff):
    """The effect of a press on a key is tested in tests/transfer/test_keys.py."""
    eve = visit("eve")
    columns = begin(eve, "a,b{c,d\n1,2,3\n1,5,6\n")
    page = eve.get(columns)

    def press(**pressed):
        return eve.post(columns, {**form_of(page), **pressed})

    assert "Press the columns that build it" in page.content.decode()
    refused = press(check="1")
    assert (refused.status_code, refused.context["error"]) == (422, "")
    text = refused.content.decode()
    assert all(f'role="alert" id="error-{name}">Choose the' in text for name in ("partition_key", "row_key"))
    assert "b{c" not in [chip.label for key in page.context["keys"] for chip in key.chips]
    page = press(toggle="partition_key:0", row_key="{#row}{{{d}", advanced="1")
    mapping = page.context["mapping"]
    assert (mapping.partition_key, mapping.row_key, page.context["is_advanced"]) == (
        "{a}",
        "{#row}{{{d}",
        True,
    )
    assert page.context["sample"][0]["key"].row_key == "0000000001{3"
    assert press(row_key="{d").status_code == 422
    page = press(row_key="{a}")
    assert "1 of 2 rows repeat the keys of an earlier row" in page.content.decode()
    mapping, proposed = press(keys="0").context["mapping"], page.context["key_proposals"][0].proposal
    assert (mapping.partition_key, mapping.row_key) == (proposed.partition_key, proposed.row_key)


def test_clicks_before_the_page_is_redrawn_are_kept(visit, staff):
    """A form that is sent twice says the second time only what was changed in it."""
    eve = visit("eve")
    columns = begin(eve, GERMAN)
    form = form_of(eve.get(columns))
    eve.post(columns, {**form, "toggle": "row_key:0"})
    eve.post(columns, {**form, "read": "2 Edm.Double decimal-comma"})
    eve.post(columns, {**form, "read": "3 Edm.DateTime day-first"})
    page = eve.post(columns, {**form, "target:4": "Active", "zone": "Europe/Berlin"})
    mapping = page.context["mapping"]
    assert (mapping.row_key, mapping.zone) == ("{Beleg}-{Filiale}", "Europe/Berlin")
    read = {it.source: (it.target, it.format) for it in mapping.columns}
    assert read["Betrag"] == ("Betrag", "decimal-comma") and read["Datum"] == ("Datum", "day-first")
    assert read["Aktiv"] == ("Active", "")
    assert eve.post(columns, {**form, "base": "{}x"}).status_code == 422


POLISH = "PartitionKey;RowKey;miasto\r\np;1;Łódź\r\np;2;Częstochowa\r\np;3;Gdańsk\r\n"


def begin_with(browser, content, name="miasta.csv", **headers):
    answer = browser.post(START, {"file": SimpleUploadedFile(name, content)}, headers=headers)
    assert answer.status_code == 302, answer.content.decode()
    return answer["Location"]


def test_halves_of_surrogate_pairs_are_shown_as_escapes(visit, staff):
    eve = visit("eve")
    rows = [
        {"PartitionKey": "p", "RowKey": "1", "\ud83d": "\udc00", "a\0b": "\0"},
        {"PartitionKey": "\ud83d", "RowKey": "2", "n": ["\ud83d"]},
    ]
    columns = begin_with(eve, "\n".join(map(json.dumps, rows)).encode(), "half.ndjson")
    page = eve.get(columns)
    assert (
        page.status_code == 200 and "\\ud83d" in page.content.decode() and "\\udc00" in page.content.decode()
    )
    check = eve.post(columns, {**form_of(page), "check": "1"})["Location"]
    job_runner.run_all()
    assert eve.get(check).status_code == 200
    run = eve.post(check.replace("check", "run"), {"rows": "1"})
    assert run.status_code == 302
    job_runner.run_all()
    assert eve.get(run["Location"]).status_code == 200 and count(staff) == 1


def readings_of(page):
    """Return the encodings that can be selected, and whether each is the present one."""
    return dict(re.findall(r'name="read_as" value="([^"]+)" id="[^"]+"\s+aria-pressed="(true|false)"', page))


def test_a_guess_of_the_encoding_is_shown_beside_others_and_changed_by_a_press(visit, staff):
    eve = visit("eve")
    columns = begin_with(eve, POLISH.encode("cp1250"))
    page = eve.get(columns).content.decode()
    readings = readings_of(page)
    assert "The file does not name its encoding." in page
    assert readings["windows-1250"] == "true" and readings["windows-1252"] == "false"
    assert "Częstochowa" in page and "Czêstochowa" in page

    page = eve.post(columns, {"read_as": "windows-1252"}).content.decode()
    assert "You chose the encoding Windows-1252." in page
    assert readings_of(page)["windows-1252"] == "true"
    assert '<option value="windows-1252" selected>' in page
    page = eve.post(columns, {"reread": "1", "encoding": "windows-1250"}).content.decode()
    assert "You chose the encoding Windows-1250." in page
    assert eve.post(columns, {"read_as": "punycode"}).status_code == 200


def test_a_doubtful_encoding_is_a_warning(visit, staff):
    eve = visit("eve")
    columns = begin_with(eve, "PartitionKey;RowKey;name\r\np;1;O’Neil\r\n".encode("cp1252"))
    page = eve.get(columns).content.decode()
    assert (
        "banner warn" in page and "The encoding is a guess: does <b><bdi>O’Neil</bdi></b> look right?" in page
    )
    page = eve.post(columns, {"read_as": "windows-1252"}).content.decode()
    assert "banner warn" not in page and "You chose the encoding Windows-1252." in page


def test_changing_the_delimiter_leaves_the_encoding_a_guess(visit, staff):
    eve = visit("eve")
    columns = begin_with(eve, POLISH.encode("cp1250"))
    page = eve.post(columns, {"reread": "1", "encoding": "windows-1250", "delimiter": ","}).content.decode()
    assert "The file does not name its encoding." in page


def test_the_language_of_the_browser_is_a_hint_to_the_encoding(visit, staff):
    eve = visit("eve")
    text = "PartitionKey;RowKey;il\r\np;1;İZMİR\r\n".encode("cp1254")
    for language, expected in (("tr-TR,tr;q=0.9,en;q=0.8", True), ("pl", False), ("", False)):
        columns = begin_with(eve, text, **{"accept-language": language})
        assert (readings_of(eve.get(columns).content.decode())["windows-1254"] == "true") is expected


def test_the_name_of_a_file_is_a_hint_to_its_format(visit, staff):
    eve = visit("eve")
    columns = begin_with(eve, b'{"PartitionKey":"p","RowKey":"1"}\n', "a.json")
    assert '<option value="json" selected>' in eve.get(columns).content.decode()


def test_too_many_columns_are_refused(visit, staff):
    eve = visit("eve")
    columns = begin_with(eve, ",".join(f"c{number}" for number in range(20_000)).encode() + b"\n")
    refused = eve.get(columns)
    assert refused.status_code == 422 and "20000 columns" in refused.content.decode()


def test_every_encoding_can_be_chosen():
    names = [name for _, several in encodings.groups() for name, _ in several]
    assert names == list(ENCODINGS)
    assert [encodings.title(it) for it in ("utf-8", "windows-1252", "koi8-r", "x-mac-greek", "big5")] == [
        "UTF-8", "Windows-1252", "KOI8-R", "Macintosh-Greek", "Big5",
    ]  # fmt: skip


def test_a_sheet_of_an_excel_file_is_chosen(visit, staff):
    openpyxl = pytest.importorskip("openpyxl")
    workbook, content = openpyxl.Workbook(), io.BytesIO()
    customers = workbook.create_sheet("Kunden")
    customers.append(["Ort", "Kundennr", "Umsatz", "Seit"])
    for number in range(30):
        customers.append([f"Ort {number % 3}", f"KD-{number}", 1.5 + number, date(2026, 3, 28)])
    workbook.save(content)
    eve = visit("eve")
    columns = begin_with(eve, content.getvalue(), "kunden.xlsx")
    page = eve.get(columns)
    assert page.context["layout"].sheets == ("Sheet", "Kunden") and 'name="sheet"' in page.content.decode()
    assert 'name="encoding"' not in page.content.decode()
    page = eve.post(columns, {"reread": "1", "format": "xlsx", "sheet": "Kunden"})
    mapping = page.context["mapping"]
    assert (mapping.partition_key, mapping.row_key) == ("{Ort}", "{Kundennr}")
    text = page.content.decode()
    assert "DateTime, from the file" in text and "Double, from the file" in text

    check = eve.post(columns, {**form_of(page), "check": "1"})["Location"]
    job_runner.run_all()
    assert "Import 30 rows" in eve.get(check).content.decode()
    eve.post(check.replace("check", "run"))
    job_runner.run_all()
    [stored] = entities.get_many(staff, [EntityKey("Ort 1", "KD-1")])
    assert {name: value.type for name, value in read_stored(stored).properties.items()} == {
        "Umsatz": Edm.DOUBLE, "Seit": Edm.DATETIME,
    }  # fmt: skip


def test_a_part_of_very_many_columns_is_shown_with_a_search_and_all_are_kept(visit, staff):
    eve = visit("eve")
    head = ["PartitionKey", "RowKey", *(f"c{number}" for number in range(column_part.MOST_COLUMNS + 50))]
    columns = begin_with(eve, "\n".join([",".join(head), ",".join("1" for _ in head)]).encode())
    page = eve.get(columns)
    last = len(head) - 3
    assert "Columns 1 to 100 of 150" in text(page)
    assert f'id="target-{last}"' not in page.content.decode()

    page = eve.post(columns, {**form_of(page), "target:7": "Seven", "show": "100"})
    assert "Columns 101 to 150 of 150" in text(page)
    page = eve.post(columns, {**form_of(page), f"target:{last}": "Last", "start": "100"})
    assert "Columns 101 to 150 of 150" in text(page)
    page = eve.post(columns, {**form_of(page), "start": "100", "find": " C7 "})
    assert [column["target"] for column in page.context["columns"]] == ["Seven"] + [
        f"c{it}" for it in range(70, 80)
    ]
    assert "Columns 1 to 11 of 11" in text(page)
    page = eve.post(columns, {**form_of(page), "find": "nothing", "found": "C7"})
    assert "No matching columns" in text(page)

    written = {it.source: it.target for it in page.context["mapping"].columns}
    assert len(written) == len(head) - 2
    assert (written["c7"], written[f"c{last}"], written["c3"]) == ("Seven", "Last", "c3")

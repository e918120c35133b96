"""`manage.py import` and `manage.py export`."""

import gzip
import io
import json
import re
import sys
import zipfile
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from storage.accounts import accounts
from storage.domain.values.kinds import AccountKind
from storage.jobs import running
from storage.models import Account, Activity, Job
from storage.runtime import job_runner
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)

FILE = "country,id,age\nse,1,36\ntr,2,n/a\nde,3,41\n"
KEYS = ("--partition-key", "{country}", "--row-key", "{id}")


@pytest.fixture
def run(capsys):
    """Run a command and return its output; the account has no table."""

    def run(*arguments):
        call_command(*map(str, arguments))
        return capsys.readouterr().out

    accounts.add("shop")
    return run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(FILE)
    return path


def test_a_new_table_of_a_file_and_a_file_of_it(run, file, tmp_path):
    said = run("import", "shop/people", file, "--create", "--dry-run", *KEYS)
    assert said.startswith(
        'csv  delimiter ,  quote "  utf-8\nPartitionKey  {country}\nRowKey  {id}\nage  String'
    )
    assert said.endswith("3 rows: 3 would be inserted.\n") and not tables.names(accounts.find("shop"))

    said = run("import", "shop/people", file, "--create", *KEYS)
    assert "3 entities were imported into people in" in said
    assert Activity.objects.get(verb="entity.import").detail["file"] == "people.csv"
    for extension in ("typed.csv", "ndjson", "json.gz", "jsonl"):
        exported = tmp_path / f"people.{extension}"
        assert "3 entities of shop/people were exported" in run("export", "shop/people", exported)
        run("import", f"shop/{extension.replace('.', '')}", exported, "--create")
        assert run("compare", "shop/people", f"shop/{extension.replace('.', '')}").endswith("identical\n")
    assert gzip.decompress((tmp_path / "people.json.gz").read_bytes()).startswith(b"[\n{")

    run("export", "shop/people", tmp_path / "some.ndjson", "--filter", "PartitionKey eq 'se'")
    assert json.loads((tmp_path / "some.ndjson").read_text())["RowKey"] == "1"
    assert Activity.objects.filter(verb="entity.export", detail__scope="query").count() == 1


def test_types_are_guessed_within_the_limits_of_the_account(run, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("PartitionKey,RowKey,Born\nse,ada,0001-01-01T00:00:00Z\n")
    Account.objects.filter(name="shop").update(kind=AccountKind.COSMOS)
    said = run("import", "shop/times", path, "--create", "--dry-run")
    assert re.search(r"Born +DateTime", said), said


def test_a_guess_of_the_encoding_is_said_with_others(run, tmp_path):
    path = tmp_path / "cities.csv"
    text = "PartitionKey;RowKey;city\r\np;1;Łódź\r\np;2;Częstochowa\r\np;3;Gdańsk\r\n"
    path.write_bytes(text.encode("cp1250"))
    said = run("import", "shop/cities", path, "--create", "--dry-run").splitlines()
    assert said[:2] == [
        'csv  delimiter ;  quote "  windows-1250',
        "The file does not say its encoding: it is probably windows-1250. Texts of it in this and others:",
    ]
    assert said[2] == "  windows-1250    Łódź | Częstochowa | Gdańsk"
    last = next(number for number, line in enumerate(said) if "--encoding" in line)
    assert said[last] == f"To read it in another one, name it: --encoding {said[3].split()[0]}"
    assert {line.split()[0] for line in said[3:last]} >= {"windows-1252"}
    said = run("import", "shop/cities", path, "--create", "--dry-run", "--encoding", "cp1252")
    assert "windows-1252" in said and "--encoding" not in said
    with pytest.raises(CommandError, match=r"no encoding punycode .* windows-1252"):
        run("import", "shop/cities", path, "--create", "--dry-run", "--encoding", "punycode")


def test_all_tables_of_an_account(run, file, tmp_path):
    run("import", "shop/people", file, "--create", *KEYS)
    tables.create(accounts.find("shop"), "empty")
    accounts.add("other")
    for number, format_ in enumerate(("typed.csv", "ndjson")):
        zipped = tmp_path / f"shop{number}.zip"
        assert "3 entities of 2 tables of shop were exported" in run(
            "export", "shop", zipped, "--format", format_
        )
        mode = ("--mode", "replace")
        assert "3 rows" in run("import", "other", zipped, "--create", "--dry-run", *mode)
        assert "3 entities were imported into people" in run("import", "other", zipped, "--create", *mode)
        assert run("compare", "shop", "other") == "empty  identical\npeople  identical\n"
    with pytest.raises(CommandError, match="Nothing was imported: 3 of 3 rows"):
        run("import", "other", zipped)


def test_parts_of_the_file_left_out_are_reported(run, tmp_path):
    file, rejects = tmp_path / "odd.csv", tmp_path / "rejects.csv"
    file.write_text("rowkey,RowKey,PartitionKey,,a b,age\nx,1,p,y,z,n/a\n,,,,,\nx,1/2,p,,,\n")
    said = run(
        "import", "shop/odd", file, "--create", "--dry-run", "--type", "age=Int32", "--misfit", "age=unset"
    )
    sentences = [
        "1 blank row skipped.", "a b becomes the property a_b.",
        "A column without a name becomes the property column4.",
        "1 value of age left out: not of its type, such as 'n/a'.",
    ]  # fmt: skip
    assert "2 rows: 1 would be inserted.\n" + "".join(f"  {it}\n" for it in sentences) in said
    said = run("import", "shop/odd", file, "--create", "--ignore", "age", "--rejects", rejects)
    assert "  age is left out: the mapping ignores it.\n" in said and "  1 blank row skipped.\n" in said
    exported = run("export", "shop/odd", "-", "--format", "ndjson")
    [entity] = [json.loads(line) for line in exported.splitlines() if line.startswith("{")]
    assert {name: entity[name] for name in ("RowKey", "rowkey", "column4", "a_b")} == {
        "RowKey": "1", "rowkey": "x", "column4": "y", "a_b": "z",
    }  # fmt: skip


def test_names_the_options_that_bring_rows_in(run, tmp_path):
    file = tmp_path / "late.csv"
    late = "p,x,3000000000,1,\np,y,1,2.5,\np,z,1,1,28.11.2026\n"
    rows = "".join(f"p,{row},1,1,2026-11-28T00:00:00Z\n" for row in range(1000))
    file.write_text(f"PartitionKey,RowKey,it's,j,at\n{rows}{late}")
    said = run("import", "shop/late", file, "--create", "--dry-run")
    for option in ("--type 'it'\"'\"'s=Int64'", "--type j=Double", "--date-format at=day-first"):
        assert option in said
    long = tmp_path / "long.ndjson"
    long.write_text(json.dumps({"PartitionKey": "p", "RowKey": "1", "x": 10**30 + 1}))
    assert "--misfit x=round" in run("import", "shop/long", long, "--create", "--dry-run")


def test_a_file_of_several_tables_is_imported_whole_or_not_at_all(run, tmp_path):
    rows = "PartitionKey,RowKey\np,{}\n"

    def refusal_of(*names):
        path = tmp_path / "x.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for number, name in enumerate(names):
                archive.writestr(name, rows.format(number))
        with pytest.raises(CommandError) as refused:
            run("import", "shop", path, "--create")
        assert not tables.names(accounts.find("shop"))
        return str(refused.value)

    assert refusal_of("a/people.csv", "b/People.json").startswith(
        "a/people.csv and b/People.json would be imported into the same table, People."
    )
    assert refusal_of("people.csv", "my people.csv").startswith("my people.csv: The specifed resource name")
    other = "This is not a ZIP file with a file for each table."
    assert refusal_of("xl/workbook.xml", "people.csv").startswith(other)
    (tmp_path / "people.csv").write_text(rows)
    with pytest.raises(CommandError, match=other):
        run("import", "shop", tmp_path / "people.csv", "--create")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass  # an account without tables is exported like this
    assert run("import", "shop", tmp_path / "empty.zip") == "The ZIP file has no files.\n"
    with zipfile.ZipFile(tmp_path / "fine.zip", "w") as archive:
        archive.writestr("a\\people.csv", rows.format(1))  # as old programs for Windows write it
        archive.writestr("__MACOSX/._people.csv", b"\0\5\x16\7")
    with pytest.raises(CommandError, match="write it as ACCOUNT/TABLE"):
        run("import", "shop", tmp_path / "fine.zip", "--create", "--job")
    assert "1 entity was imported into people" in run("import", "shop", tmp_path / "fine.zip", "--create")


def test_a_job_of_the_server(run, file):
    said = run("import", "shop/people", file, "--create", "--job", "--type", "age=Int32", *KEYS)
    job = Job.objects.get()
    assert said.endswith(f"Job {job.pk} imports {file} into people. Look at it with: job show {job.pk}\n")
    running.run_all(job_runner.KINDS)
    job.refresh_from_db()
    assert (job.status, job.counts["inserted"], job.failed) == ("done", 2, 1)


def test_rows_that_do_not_fit(run, file, tmp_path, capsys):
    arguments = ("import", "shop/people", file, "--create", "--type", "age=Int32", *KEYS)
    with pytest.raises(CommandError, match="Nothing was imported: 1 of 3 rows"):
        run(*arguments)
    said = capsys.readouterr().out
    assert "1  age is not of the type Int32. 'n/a'\n      line 3\n      --misfit age=string" in said
    assert not tables.names(accounts.find("shop"))

    rejects = tmp_path / "rejects.csv"
    said = run(*arguments, "--rejects", rejects)
    assert "2 entities were imported" in said and f"1 row was rejected. They are in {rejects}." in said
    assert rejects.read_text().splitlines() == [
        "country,id,age,reject:line,reject:reason", "tr,2,n/a,3,age is not of the type Int32.",
    ]  # fmt: skip
    assert "3: age is not of the type Int32.\n" in run("job", "show", Job.objects.get().pk)
    mapping = tmp_path / "mapping.json"
    run(*arguments, "--dry-run", "--unset", "age=n/a", "--save-mapping", mapping)
    said = run("import", "shop/people", rejects, "--mapping", mapping)
    assert "1 entity was imported" in said
    with pytest.raises(CommandError, match="3 of 3 rows"):
        run("import", "shop/people", file, "--mapping", mapping)
    assert "0 inserted, 3 changed" in run(
        "import", "shop/people", file, "--mapping", mapping, "--mode", "merge"
    )
    assert "3 left alone" in run("import", "shop/people", file, "--mapping", mapping, "--mode", "skip")


GERMAN = """Filiale;Beleg;Betrag;Menge;Datum;Aktiv;Rabatt
Köln;1001;1.234,56;1.200;28.11.2026;WAHR;12 %
Köln;1002;99,90;3;01.12.2026;FALSCH;3,5 %
Aachen;1003;-0,5;7;15.01.2027 13:45;WAHR;4 %
"""
ALL = ("--number-format", "comma", "--date-format", "dd.MM.yyyy", "--boolean-words", "wahr/falsch")


def test_numbers_and_dates_as_people_write_them(run, tmp_path, capsys):
    file, mapping = tmp_path / "german.csv", tmp_path / "mapping.json"
    file.write_text(GERMAN)
    keys = ("--partition-key", "{Filiale}", "--row-key", "{Beleg}")
    said = run("import", "shop/sales", file, "--create", "--dry-run", *keys)
    assert "Betrag  String  text, such as 1.234,56" in said  # nothing is applied by itself
    assert (
        "Betrag: All values are numbers with a decimal comma: 1.234,56 → 1234.56, -0,5 → -0.5, 99,90 → 99.90.\n"
        "    --number-format Betrag=decimal-comma\n" in said
    )
    assert "Datum: All values are dates, day first: 28.11.2026 → 2026-11-28" in said
    assert "    --boolean-words Aktiv=WAHR/FALSCH\n" in said
    assert "    --number-format 'Rabatt=decimal-comma percent-as-fraction'\n" in said
    assert "    --number-format 'Rabatt=decimal-comma percent-as-number'\n" in said

    rabatt = ("--number-format", "Rabatt=decimal-comma percent-as-fraction")
    said = run("import", "shop/sales", file, "--create", *ALL, *rabatt, *keys, "--save-mapping", mapping)
    assert "Menge  Int32  numbers with a decimal comma" in said
    assert "Dates and times without a time zone are those of UTC; --zone says otherwise." in said
    first = {it["RowKey"]: it for it in exported(run, tmp_path)}["1001"]
    assert {name: first[name] for name in ("Betrag", "Menge", "Datum", "Aktiv", "Rabatt")} == {
        "Betrag": 1234.56, "Menge": 1200, "Datum": "2026-11-28T00:00:00Z", "Aktiv": True, "Rabatt": 0.12,
    }  # fmt: skip

    # for the next file
    file.write_text("Filiale;Beleg;Betrag;Menge;Datum;Aktiv;Rabatt\nBonn;1;1,5;2;13/45/2026;;\n")
    with pytest.raises(CommandError, match="1 of 1 rows"):
        run("import", "shop/sales", file, "--mapping", mapping)
    said = capsys.readouterr().out
    assert "1  Datum is not a date, day first. '13/45/2026'" in said and "--misfit Datum=string" in said


def exported(run, folder):
    run("export", "shop/sales", folder / "sales.ndjson")
    return [json.loads(line) for line in (folder / "sales.ndjson").read_text().splitlines()]


def test_formats_of_single_columns_and_those_of_no_column(run, file):
    said = run("import", "shop/people", file, "--create", "--dry-run", "--date-format", "day-first", *KEYS)
    assert "No column has only values in the format day-first. Name one: COLUMN=day-first" in said
    assert "age: 2 of 3 values are whole numbers: 36, 41; 1 is not: 'n/a'.\n    --type age=Int32\n" in said
    assert "    --type age=Int32 --misfit age=string\n" in said
    said = run(
        "import", "shop/people", file, "--create", "--dry-run", "--number-format", "age=decimal-point", *KEYS
    )
    assert "age  Double  numbers with a decimal point" in said
    assert "1  age is not a number with a decimal point. 'n/a'" in said


def test_missing_keys_are_proposed(run, file):
    expected = (
        "Choose what makes up the PartitionKey and the RowKey: the file has no column of this name, but country, id,"
        " age. Proposed:\n  --partition-key '{country}' --row-key '{id}'\n      because PartitionKey: 3 different"
        " values in 3 rows; RowKey: unique in 3 rows\n"
    )
    with pytest.raises(CommandError) as refused:
        run("import", "shop/people", file, "--create")
    assert str(refused.value).startswith(expected)
    with pytest.raises(CommandError, match=r"up the RowKey: .*\n  --row-key '\{id\}'\n      because"):
        run("import", "shop/people", file, "--create", "--partition-key", "x")


def test_the_standard_input_and_output(monkeypatch, capfdbinary):
    accounts.add("shop")
    stream = io.BytesIO(FILE.encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    call_command("import", "shop/people", "-", "--create", *KEYS)
    call_command("export", "shop/people", "-", "--format", "csv", "--escape-formulas")
    assert b"PartitionKey,RowKey,Timestamp,age" in capfdbinary.readouterr().out


REFUSED = [
    (("import", "shop/people", "{file}"), "create it with --create"),
    (("import", "shop/people", "{file}", "--create"), "no column of this name, but country, id, age"),
    (("import", "shop/people", "{file}", "--create", *KEYS, "--number-format", "x"), "'x' is not a format"),
    (
        ("import", "shop/people", "{file}", "--create", *KEYS, "--number-format", "age=dmy"),
        "is a date, day first",
    ),
    (("import", "shop/people", "{file}", "--create", *KEYS, "--date-format", "ag=dmy"), "no column ag"),
    (("import", "nobody/people", "{file}"), "account nobody does not exist"),
    (("import", "shop/people", "{file}x", "--create"), "cannot be read: No such file"),
    (("import", "shop/people", "{file}", "--create", *KEYS, "--type", "age=Int16"), "Int16"),
    (("import", "shop/people", "{file}", "--create", *KEYS, "--zone", "Nowhere"), "is not a time zone"),
    (("import", "shop/people", "{file}", "--create", *KEYS, "--misfit", "age=x"), "reject, string, unset"),
    (("export", "shop/people", "{file}.xlsx"), "does not exist"),
]


def test_wrong_arguments_are_refused(run, file):
    for arguments, why in REFUSED:
        with pytest.raises(CommandError, match=why):
            run(*(it.replace("{file}", str(file)) for it in arguments))

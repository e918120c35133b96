"""An account in a file: exported as of one moment, and imported exactly, or not at all."""

import errno
import gzip
import hashlib
import io
import json
import math
import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from console.models import User
from storage.access import policies
from storage.account_files import account_export, account_export_jobs, account_import
from storage.account_files.account_copies import CopyRefused
from storage.account_files.account_files import FileRefused
from storage.accounts import account_settings, accounts, expiry, removal, sealed_keys, service_properties
from storage.accounts.refusals import AccountExists
from storage.comments import comments, threads
from storage.comments import files as comment_files
from storage.comments.content import Subject
from storage.core import registry
from storage.core.quotas import COMMENTS
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.changes import Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.fits import Misfit
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Refused
from storage.domain.service_properties.properties import CorsRule, ServiceProperties
from storage.domain.values.edm import FIRST_COSMOS_TICK, Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.entities import edits, entities
from storage.jobs import files, jobs, running
from storage.models import Account, Table
from storage.relations import history
from storage.runtime import job_runner
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql.relations import relation_name
from storage.tables import tables
from tests import strategies
from tests.comments.test_operations import write_many
from tests.examples import of_usual

pytestmark = pytest.mark.django_db(transaction=True)
STORAGE, COSMOS = AccountKind
TEXT = EdmValue(Edm.STRING, "x")


def fill(account, name, *content, **described):
    table = tables.create(account, name, **described)
    for entity in content:
        entity.kind = AccountKind(account.kind)
    for start in range(0, len(content), 500):
        for statement in statements.insert_all(relation_name(table.pk), content[start : start + 500]):
            sql.run(statement)
    return table


def one(row, **properties):
    return Entity(EntityKey("p", row), properties or {"A": TEXT})


def exported(account, **options):
    file = io.BytesIO()
    account_export.export(account, file, **options)
    return file


def imported(file, name="", kind=None):
    return account_import.load(account_import.check(file, name, kind)).account


def lines(file):
    return [json.loads(line) for line in gzip.decompress(file.getvalue()).splitlines()]


def packed(content):
    """Return a file with these lines and a matching end line."""
    raw = [json.dumps(line).encode() + b"\n" for line in content]
    end = {
        "tables": sum("table" in line for line in content),
        "entities": sum("PartitionKey" in line for line in content),
        "sha256": hashlib.sha256(b"".join(raw)).hexdigest(),
    }
    return io.BytesIO(gzip.compress(b"".join(raw) + json.dumps({"end": end}).encode() + b"\n"))


def comparable(file):
    """Return the lines of a file without the parts that differ in each copy."""
    header, *content, _ = lines(file)
    for name in ("account", "time"):
        del header[name]
    for line in content:
        line.pop("Timestamp", None)
    return [header, *([*line.items()] for line in content)]


@pytest.fixture
def source():
    return accounts.add("source")


ODD = {
    "text": {"S": EdmValue(Edm.STRING, '\0 \ud800 \x01 \ue000 "\\\n\u2028 😀')},
    "types": {
        "B": EdmValue(Edm.BOOLEAN, True),
        "I": EdmValue(Edm.INT32, -(2**31)),
        "L": EdmValue(Edm.INT64, 2**63 - 1),
        "D": EdmValue(Edm.DOUBLE, 5.0),
        "T": EdmValue(Edm.DATETIME, 15_000_001),
        "G": EdmValue(Edm.GUID, "00000000-0000-0000-0000-0000000000ff"),
        "X": EdmValue(Edm.BINARY, bytes(range(256))),
        "Ж": EdmValue(Edm.STRING, ""),
    },
    "doubles": {
        f"D{number}": EdmValue(Edm.DOUBLE, value)
        for number, value in enumerate([-0.0, math.nan, math.inf, -math.inf, 1e22, 5e-324])
    },
    "names": dict.fromkeys(("table", "end", "format", "PartitionKey_"), TEXT),
    "none": {},
    "many": {f"P{number}": TEXT for number in range(252)},
}


def test_everything_is_the_same_after_a_round_trip(source):
    fill(
        source,
        "People",
        *(Entity(EntityKey("p", row), properties) for row, properties in ODD.items()),
        *(
            Entity(EntityKey(*key), {"A": TEXT})
            for key in (("", ""), ("名" * 1024, "前" * 1024), ("'\"", "😀"))
        ),
        *(Entity(EntityKey("large", f"{n:02}"), {"S": EdmValue(Edm.STRING, "x" * 32768)}) for n in range(99)),
        *(Entity(EntityKey(f"q{n % 7}", f"{n:04}"), {"N": EdmValue(Edm.INT32, n)}) for n in range(2500)),
        description="of the source",
        tags=["shop", "name"],
    )
    fill(source, "empty")
    policies.replace_by_name(
        source, "empty", [SignedIdentifier("reader", AccessPolicy("", None, "r")), SignedIdentifier("none")]
    )
    rule = CorsRule(("https://example.org",), ("GET",), ("*",), (), 5)
    service_properties.replace(source, lambda _: ServiceProperties(cors=(rule,)))
    account_settings.change(
        source, label="Shop", labels={"team": "blue"}, history_days=30, networks=["::1"], protected=True
    )

    file = exported(source)
    account = imported(file, "there")
    again = exported(account)

    assert comparable(again) == comparable(file)
    assert sum("PartitionKey" in line for line in lines(file)) == 2608
    assert (account.enabled, account.protected, account.label) == (True, True, "Shop")
    assert sealed_keys.keys_of(account) != sealed_keys.keys_of(source)
    stored = read_stored(entities.get(tables.get(account, "people"), EntityKey("p", "doubles")))
    assert repr(dict(stored.properties)) == repr(ODD["doubles"])
    query = EntityQuery(top=1)
    before, after = (
        entities.page(tables.get(it, "people"), query).entities[0].timestamp for it in (source, account)
    )
    assert after > before


@settings(max_examples=of_usual(6), deadline=None)
@given(drawn=st.dictionaries(st.tuples(strategies.keys, strategies.keys), strategies.properties, max_size=40))
def test_any_entities_are_the_same_after_a_round_trip(drawn):
    for account in Account.objects.all():
        removal.remove(account.name, with_tables=True)
    account = accounts.add("source")
    fill(account, "people", *(Entity(EntityKey(*key), properties) for key, properties in drawn.items()))
    file = exported(account)
    assert comparable(exported(imported(file, "there"))) == comparable(file)


def test_keys_are_exported_on_request_only(source):
    assert "keys" not in lines(exported(source))[0]
    account = imported(exported(source, with_keys=True), "there")
    assert sealed_keys.keys_of(account) == sealed_keys.keys_of(source)


@pytest.mark.parametrize("days", [7, 0], ids=["with history", "without history"])
def test_an_export_is_a_consistent_snapshot(source, days, monkeypatch):
    monkeypatch.setattr(account_export, "_PAST_SECONDS", 0)
    account_settings.change(source, history_days=days)
    people = fill(source, "people", *(one(f"{number:04}") for number in range(1500)))
    if days:
        fill(source, "sold", one("a"))
    fill(source, "zoo", one("a"))
    before = comparable(exported(source))

    def write(number):
        if number == 1000:
            for _ in range(2) if days else ():
                in_another_thread(lambda: end_segment(source))
            # not in the transaction of an export without history
            changes = [Upsert(one(row, B=TEXT), merge=False) for row in ("0000", "1400", "2000")]
            in_another_thread(lambda: edits.apply(Table.objects.get(pk=people.pk), changes, by=SERVER))
            if days:
                in_another_thread(lambda: tables.delete(source, "sold"))
            in_another_thread(lambda: tables.create(source, "new"))

    assert comparable(exported(source, progress=write)) == before


@transaction.atomic
def end_segment(account):
    """Let changes be recorded where the export has not looked."""
    history.go_on(account.pk)
    history.prepare_next(account.pk)


def in_another_thread(do):
    def run():
        try:
            do()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result(60)


def test_an_account_of_the_other_kind(source):
    table = fill(source, "people", one("r"), one(""))
    policies.replace_by_name(source, "people", [SignedIdentifier("reader", AccessPolicy("", "", "r"))])
    file = exported(source)

    checked = account_import.check(file, "there", COSMOS)
    assert [(it.misfit, it.table, it.number) for it in checked.findings] == [
        (Misfit.POLICIES, "people", 0),
        (Misfit.EMPTY_KEY, "people", 1),
    ]
    with pytest.raises(CopyRefused):
        account_import.load(checked)
    assert not accounts.exists("there")

    sql.execute(f"DELETE FROM {relation_name(table.pk)} WHERE rk = ''")
    there = imported(exported(source), "there", COSMOS)
    assert (there.kind, tables.names(there)) == ("cosmos", ["people"])
    fill(there, "PEOPLE", one("r", T=EdmValue(Edm.DATETIME, FIRST_COSMOS_TICK)))
    result = account_import.check(exported(there), "back", STORAGE).findings
    assert {it.misfit for it in result} == {Misfit.TABLE_CASE, Misfit.EARLY_TIME}
    assert comparable(exported(imported(exported(there), "again"))) == comparable(exported(there))


def changed(found, line, **values):
    return [*found[:line], {**found[line], **values}, *found[line + 1 :]]


WITH_AGE = service_properties.write(
    ServiceProperties(cors=(CorsRule(("*",), ("GET",), (), (), 0.5),))  # no number that a range has
)
BAD = {
    "not gzip": (lambda raw, _: raw[20:], "not an export of an account"),
    "empty": (lambda raw, _: b"", "not an export of an account"),
    "of something else": (lambda raw, _: gzip.compress(b"{}\n"), "not an export of an account"),
    "cut": (lambda raw, _: raw[:-30], "incomplete|damaged"),
    "no end": (
        lambda raw, it: gzip.compress(gzip.decompress(raw).rpartition(b'{"end"')[0]),
        "ends after line 4",
    ),
    "other bytes": (lambda raw, _: raw[:-8] + bytes(8), "damaged after line 5"),
    "other content": (
        lambda raw, _: gzip.compress(gzip.decompress(raw).replace(b'"x"', b'"y"')),
        "checksum in line 5",
    ),
    "not JSON": (
        lambda raw, _: gzip.compress(gzip.decompress(raw).replace(b'"x"', b"x", 1)),
        "Line 3 of the file is not JSON",
    ),
    "more": (
        lambda raw, _: gzip.compress(gzip.decompress(raw) + b"{}\n"),
        "Line 6 of the file does not belong",
    ),
    "version": (lambda _, it: changed(it, 0, version=2), "version 2 of the format"),
    "version of a terminal": (lambda _, it: changed(it, 0, version="\x1b[2J"), r"version '\\x1b\[2J' of"),
    "kind": (lambda _, it: changed(it, 0, kind="mongo"), "Line 1 of the file has no valid kind"),
    "setting": (lambda _, it: changed(it, 0, settings={"label": 5}), "Line 1 .* no valid label"),
    "unknown setting": (lambda _, it: changed(it, 0, settings={"size": 5}), "Line 1 .* no valid size"),
    "network": (lambda _, it: changed(it, 0, settings={"networks": [5]}), "Line 1 .* no valid networks"),
    "properties": (lambda _, it: changed(it, 0, service_properties={}), "no valid service_properties"),
    "age": (lambda _, it: changed(it, 0, service_properties=WITH_AGE), "no valid service_properties"),
    "keys": (lambda _, it: changed(it, 0, keys=["x", "y"]), "Line 1 of the file has no valid keys"),
    "table": (lambda _, it: changed(it, 1, table={"name": "people"}), "Line 2 .* no valid description"),
    "table of a terminal": (
        lambda _, it: changed(it, 1, table={**it[1]["table"], "name": "\x1b[2J"}),
        "Line 2 of the file has no valid name",
    ),
    "no table": (lambda _, it: [it[0], *it[2:]], "Line 2 of the file does not belong"),
    "twice": (lambda _, it: [*it, it[-1]], "Line 5 of the file has the same keys"),
    "disorder": (lambda _, it: [*it, it[-2]], "Line 5 of the file has keys that belong before"),
    "key": (lambda _, it: changed(it, 2, RowKey="a/b"), "Line 3 of the file has no valid key"),
    "no key": (lambda _, it: changed(it, 2, RowKey=None), "Line 3 of the file has no valid key"),
    "null": (lambda _, it: changed(it, 2, A=None), "Line 3 of the file has no valid A"),
    "name of a terminal": (lambda _, it: changed(it, 2, **{"\x1b[2J": 1}), r"no valid '\\x1b\[2J'"),
    "long name": (lambda _, it: changed(it, 2, **{"a b" * 99: 1}), "no valid (a b){33}a[.]$"),
    "name": (lambda _, it: changed(it, 2, **{"a b": 1}), "Line 3 of the file has no valid a b"),
    "type": (lambda _, it: changed(it, 2, **{"A@odata.type": "Edm.Int64"}), "Line 3 .* no valid A"),
    "of no property": (lambda _, it: changed(it, 2, **{"Q@odata.type": "Edm.Guid"}), "valid Q@odata.type"),
}


def test_bad_files_are_refused(source):
    fill(source, "people", one("a"), one("b"))
    file = exported(source)
    for name, (make, message) in BAD.items():
        made = make(file.getvalue(), lines(file)[:-1])
        with pytest.raises(FileRefused) as refused:
            account_import.check(io.BytesIO(made) if isinstance(made, bytes) else packed(made), "there")
        assert re.search(message, str(refused.value)), name
    assert set(Account.objects.values_list("name", flat=True)) == {"source"}


def test_a_file_changed_after_its_check_imports_nothing(source):
    fill(source, "people", one("a"), one("b"))
    file = exported(source)
    checked = account_import.check(file, "there")
    file.seek(0)
    file.write(gzip.compress(gzip.decompress(file.getvalue()).replace(b'"x"', b'"y"')))
    with pytest.raises(FileRefused):
        account_import.load(checked)
    assert not accounts.exists("there")


def test_refuses_taken_and_invalid_names(source):
    file = exported(source)
    with pytest.raises(AccountExists):
        account_import.check(file)
    with pytest.raises(Refused, match="cannot be an account"):
        account_import.check(file, "Not A Name")


def test_a_file_appears_once_complete(source, tmp_path):
    path = tmp_path / "source.gz"
    path.write_text("before")
    with pytest.raises(TypeError), account_export.opening(path, io.BytesIO()) as stream:
        stream.write(None)
    assert [it.name for it in tmp_path.iterdir()] == ["source.gz"]
    assert path.read_text() == "before"

    with account_export.opening(path, io.BytesIO()) as stream:
        account_export.export(source, stream)
    assert [it.name for it in tmp_path.iterdir()] == ["source.gz"]
    assert path.stat().st_mode & 0o777 == 0o600
    with account_import.opening(path, io.BytesIO()) as stream:
        assert account_import.check(stream, "there").entities == 0
    for place in (tmp_path, tmp_path / "missing" / "source.gz"):
        with pytest.raises(FileRefused, match="not possible to write"), account_export.opening(place, None):
            pass
    with pytest.raises(FileRefused, match="cannot be read"), account_import.opening(tmp_path / "no", None):
        pass


def test_messages_call_the_standard_streams_by_their_names():
    with pytest.raises(FileRefused) as refused, account_export.opening(None, Failing()) as stream:
        stream.write(b"x")
    assert (
        str(refused.value) == "It is not possible to write to the standard output: No space left on device."
    )
    with pytest.raises(FileRefused) as refused, account_import.opening(None, Failing()):
        pass
    assert str(refused.value) == "The standard input cannot be read: No space left on device."


class Failing(io.BytesIO):
    """A stream that can be neither read nor written."""

    def read(self, *_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write = read


def test_settings_in_a_file_do_not_depend_on_the_server(source, monkeypatch):
    account_settings.change(source, history_days=30, enabled=False)
    file = exported(source)
    monkeypatch.setattr(history, "is_available", lambda: False)
    account = imported(file, "there")
    assert (account.enabled, account.history_days) == (False, 7)


def test_an_expired_account_is_imported_without_its_lifetime_and_what_that_did(source):
    account_settings.change(source, expires_at=timezone.now() - timedelta(minutes=1))
    expiry.expire(timezone.now())
    account = imported(exported(source), "there")
    assert (account.enabled, account.expires_at, account.frozen_at) == (True, None, None)


@pytest.mark.parametrize("history_days", [0, 7])
def test_an_interrupted_export_job_starts_over(source, history_days):
    account_settings.change(source, history_days=history_days)
    fill(source, "people", one("a"), one("b"))
    fill(source, "orders", one("c"))
    job = jobs.start_requested(account_export_jobs.request(source), by=Actor(ActorKind.USER, "ada"))
    rests = iter([False, True])  # after it has begun, and after the first page
    running.run(job.pk, job_runner.KINDS, lambda _: next(rests, True))
    job = job_runner.finish(job)

    assert (job.status, job.counts, job.result) == ("done", {"exported": 3}, {"tables": 2, "entities": 3})
    [file] = files.to_download(job)
    assert file.name == "source.ndjson.gz"
    content = b"".join(files.read(file))
    direct = exported(source)
    assert lines(io.BytesIO(content))[1:-1] == lines(direct)[1:-1]
    assert account_import.check(io.BytesIO(content), "there").entities == 3


def test_comments_go_with_their_account_by_the_names_of_their_authors(source):
    table = fill(source, "people", one("a"), one("b"))
    author = User.objects.create(username="ada")
    by = Actor(ActorKind.USER, "ada")
    first, _ = comments.begin(table, Subject(EntityKey("p", "a")), "@ada look", author=author, by=by)
    comments.reply(first.thread, "seen", author=author, by=by)
    comments.resolve(first.thread, is_resolved=True, by=by)
    comments.begin(table, Subject(), "of the table", author=author, by=by)
    comments.begin(table, Subject(query=1), "of a query", author=author, by=by)
    file = exported(source)
    assert [list(line) for line in lines(file)][1:4] == [["table"], ["thread"], ["thread"]]
    copy = imported(file, "copy")
    result = threads.of_account(copy).order_by("pk")
    assert [[(it.author_name, it.author, it.text) for it in thread.shown] for thread in result] == [
        [("ada", None, "@ada look"), ("ada", None, "seen")],
        [("ada", None, "of the table")],
    ]
    assert [it.resolved_by for it in result] == ["ada", ""]
    assert comparable(exported(copy)) == comparable(file)


def test_a_file_with_comments_is_refused_where_comments_are_left_out(source):
    table = fill(source, "people", one("a"))
    author = User.objects.create(username="ada")
    comments.begin(table, Subject(), "hello", author=author, by=Actor(ActorKind.USER, "ada"))
    file = exported(source)
    try:
        registry.leave_out({"comments"})
        with pytest.raises(FileRefused, match="Line 3 of the file does not belong there"):
            imported(file, "there")
        written = exported(source)
        assert not any("thread" in line for line in lines(written))
        assert Table.objects.get(account=imported(written, "there")).has_comments is False
    finally:
        registry.leave_out(())


def test_a_long_thread_has_several_lines_and_not_more_comments_than_an_account_can_have(
    source, settings, monkeypatch
):
    monkeypatch.setattr(comment_files, "_AT_ONCE", 60)
    table = fill(source, "people", one("a"))
    author = User.objects.create(username="ada")
    by = Actor(ActorKind.USER, "ada")
    first, _ = comments.begin(table, Subject(EntityKey("p", "a")), "0", author=author, by=by)
    write_many(first, 150)
    comments.begin(table, Subject(EntityKey("p", "a")), "another", author=author, by=by)
    file = exported(source)
    written = [len(it["thread"]["comments"]) for it in lines(file) if "thread" in it]
    assert written == [60, 60, 30, 1]
    settings.QUOTAS = {**settings.QUOTAS, COMMENTS.name: 151}
    copy = imported(file, "copy")
    result = threads.of_account(copy).order_by("pk")
    assert [[it.text for it in threads.comments_of(thread)] for thread in result] == [
        [str(it) for it in range(150)],
        ["another"],
    ]
    settings.QUOTAS = {**settings.QUOTAS, COMMENTS.name: 150}
    with pytest.raises(FileRefused, match="more than 150 comments"):
        account_import.check(file, "there")


def test_a_thread_that_is_none_is_refused(source):
    thread = {
        "key": None,
        "created_at": "2026-01-01T00:00:00Z",
        "resolved_at": None,
        "resolved_by": "",
        "comments": [],
    }
    fill(source, "people", one("a"))
    header, table, *rest = lines(exported(source))[:-1]
    assert account_import.check(packed([header, table, {"thread": thread}, *rest]), "copy").entities == 1
    for wrong in (
        {"key": ["p"]},
        {"created_at": "2026"},
        {"created_at": "0001-01-01T00:00:00+14:00"},
        {"comments": [{}]},
        {"key": ["\0", ""]},
    ):
        with pytest.raises(FileRefused, match="thread"):
            account_import.check(packed([header, table, {"thread": {**thread, **wrong}}, *rest]), "copy")

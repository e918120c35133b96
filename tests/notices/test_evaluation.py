"""Rules that open, renew and resolve notices, evaluated by a single process."""

import socket
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.urls import resolve
from django.utils.module_loading import import_string

from console.models import User
from storage.access import keys
from storage.access import sas as sas_operations
from storage.access.sas import SasDescription
from storage.accounts import accounts, declarations, sealed_keys
from storage.accounts import conditions as accounts_conditions
from storage.accounts.subject import AccountNotice
from storage.activity import activity
from storage.backups import last_backup
from storage.backups.last_backup import BackupFailure, LastBackup
from storage.backups.subject import BackupNotice
from storage.core import registry
from storage.domain import sas
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.access.roles import Scope
from storage.domain.requests.series import HISTOGRAM_BOUNDS, PeriodCounts, SeriesKind, Traffic, write_counts
from storage.health import disk
from storage.jobs import jobs
from storage.jobs.subject import JobNotice
from storage.metrics.series import WHOLE
from storage.metrics.subject import MetricsNotice
from storage.models import (
    Account,
    Activity,
    Job,
    KeyRotation,
    Notice,
    NoticeDelivery,
    RegisteredSas,
    RequestSeries,
    Snapshot,
    Table,
)
from storage.notices import evaluation, presentation, rules, webhooks
from storage.notices.kinds import describe
from storage.notices.webhooks import WebhookFields
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.runtime import periodic
from storage.snapshots.subject import SnapshotNotice
from storage.tables import tables
from storage.tables.indexes import INDEX_JOB, Arguments

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
MAX = Actor(ActorKind.USER, "max")


def kinds(now=NOW):
    """Evaluate, and return the kinds of the notices that are open."""
    evaluation.evaluate(now)
    return sorted(Notice.objects.filter(resolved_at=None).values_list("kind", flat=True))


def events():
    return list(NoticeDelivery.objects.order_by("pk").values_list("event", flat=True))


@pytest.fixture
def hook(account):
    return webhooks.create(account, WebhookFields("hook", "https://example.com/"), by=MAX)[1]


def token(account, expires_at, label="nightly"):
    tables.find(account, "people") or tables.create(account, "people")
    unsigned = sas.TableSas(
        table="people", version="2019-02-02", permissions="r", expiry=f"{expires_at:%Y-%m-%dT%H:%M:%SZ}"
    )
    return sas_operations.issue(account, unsigned, 1, SasDescription(label), by=MAX).fingerprint


def test_a_token_opens_one_notice_has_news_on_its_last_day_and_resolves(account, hook):
    fingerprint = token(account, NOW + timedelta(days=30))
    token(account, NOW + timedelta(hours=12), "of a program")
    assert kinds() == []
    later = NOW + timedelta(days=27, hours=1)
    assert kinds(later) == ["sas.expiring"]
    assert kinds(later + MINUTE) == ["sas.expiring"]
    notice = Notice.objects.get()
    assert (notice.subject, notice.severity, events()) == (fingerprint, "warning", ["opened"])
    assert notice.found_at == later + MINUTE
    assert notice.news_at == later

    assert kinds(NOW + timedelta(days=29, hours=12)) == ["sas.expiring"]
    assert kinds(NOW + timedelta(days=29, hours=13)) == ["sas.expiring"]
    notice.refresh_from_db()
    assert (notice.severity, notice.news_at) == ("error", NOW + timedelta(days=29, hours=12))
    assert events() == ["opened", "changed"]

    sas_operations.set_blocked(account, fingerprint, blocked=True, by=MAX)
    assert kinds(NOW + timedelta(days=29, hours=14)) == []
    assert events() == ["opened", "changed", "resolved"]
    sas_operations.set_blocked(account, fingerprint, blocked=False, by=MAX)
    assert kinds(NOW + timedelta(days=29, hours=15)) == ["sas.expiring"]
    assert Notice.objects.count() == 2


def test_few_of_many_tokens_open_notices(account):
    fingerprint = token(account, NOW + timedelta(days=30))
    row = RegisteredSas.objects.get(fingerprint=fingerprint)
    tokens = [
        token(account, NOW + timedelta(days=30, minutes=number)) for number in range(evaluation.MOST_OPEN + 2)
    ]
    assert len(set(tokens)) == evaluation.MOST_OPEN + 2
    later = NOW + timedelta(days=27, hours=1)
    assert kinds(later) == ["sas.expiring"] * evaluation.MOST_OPEN
    row.delete()
    assert kinds(later) == ["sas.expiring"] * evaluation.MOST_OPEN  # the next one takes its place
    assert Notice.objects.count() == evaluation.MOST_OPEN + 1


def test_old_keys_by_their_rotation_which_outlives_the_activity_log(account):
    accounts.rotate("acme", 1, by=MAX)
    rotated = KeyRotation.objects.get()
    assert keys.state(account, 1, NOW).since == rotated.rotated_at
    assert keys.state(account, 2, NOW).since == account.created_at
    later = NOW + timedelta(days=365, hours=12)  # after the account was made, some time after NOW
    KeyRotation.objects.update(rotated_at=NOW + timedelta(days=100))
    activity.tidy(later)
    assert kinds(later) == ["key.old"]
    assert describe(AccountNotice.KEY_OLD, Notice.objects.get().facts) == (
        "key2 has not been rotated for 365 days."
    )
    rules.change(account, AccountNotice.KEY_OLD, is_on=True, threshold=30, by=MAX)
    assert kinds(later) == ["key.old", "key.old"]
    declared = declarations.AccountKeys("acme", sealed_keys.generate_key(), sealed_keys.generate_key())
    declarations.ensure([declared])
    assert kinds(later - timedelta(days=365)) == []


def test_jobs_that_fail_are_one_notice_for_each_kind_with_news(account, hook):
    starter = User.objects.create(username="max")
    tables.create(account, "people")
    for number in range(2):
        job = jobs.start(
            INDEX_JOB, Arguments(number, "Score"), account=account, table=Table.objects.get(), by=MAX
        )
        Job.objects.filter(pk=job.pk).update(status="failed", ended_at=NOW)
        assert kinds(NOW + number * MINUTE) == ["job.failed"]
    assert Notice.objects.get().facts == {"job": job.pk, "job_kind": "table.index", "number": 2}
    assert events() == ["opened", "changed"]
    jobs.mark_seen(starter, upto=NOW)
    assert kinds(NOW + 2 * MINUTE) == []


def test_accounts_that_expire(account):
    Account.objects.update(expires_at=NOW + timedelta(days=10))
    Account.objects.create(name="brief", expires_at=NOW + timedelta(hours=8))
    assert kinds(NOW) == []
    assert kinds(NOW + timedelta(days=9, hours=1)) == ["account.expiring"]
    frozen = NOW + timedelta(days=10)
    Account.objects.filter(name="acme").update(frozen_at=frozen, enabled=False)
    Account.objects.filter(name="brief").update(frozen_at=NOW + timedelta(hours=8), enabled=False)
    assert kinds(frozen + MINUTE) == ["account.deletion"]
    account.delete()
    assert Notice.objects.count() == 0


def test_quotas(account, settings):
    settings.QUOTAS = {**settings.QUOTAS, "snapshot": 10}
    for number in range(10):
        Snapshot.objects.create(
            account=account,
            name=f"s{number}",
            reason="user",
            taken_at=NOW,
            visible="",
            ticks=0,
            actor_kind="",
        )
        if number >= 7:
            assert kinds() == (["quota.snapshots"] if number >= 8 else [])
    assert Notice.objects.get().severity == "error"
    rules.change(account, SnapshotNotice.QUOTA, is_on=False, threshold=None, by=MAX)
    assert kinds() == []
    settings.QUOTAS = {**settings.QUOTAS, "sas": 1}
    token(account, NOW + timedelta(days=300))
    assert kinds() == ["quota.sas"]


def count(account, at, status=200, requests=100, bound=0.01):
    counts = PeriodCounts()
    latencies = {HISTOGRAM_BOUNDS.index(bound): requests}
    counts.traffic(SeriesKind("QueryEntity", status)).add(Traffic(requests, latencies=latencies))
    RequestSeries.objects.create(
        account=account,
        table_id=WHOLE,
        process=f"{status}{bound}",
        minutes=1,
        period=at.replace(second=0, microsecond=0),
        counts=write_counts(counts),
    )


def test_unimplemented_operations_are_not_server_failures(account):
    count(account, NOW, status=501, requests=100)
    assert kinds() == []


def test_errors_and_latencies_resolve_after_a_calm(account, hook):
    count(account, NOW)
    count(account, NOW, status=404, requests=30)
    count(account, NOW, status=403, requests=8)
    count(account, NOW, status=500, requests=2)
    assert kinds() == []  # 10 of 140
    count(account, NOW, status=503, requests=6, bound=5.0)
    assert kinds() == ["errors.high"]  # 16 of 146; six of these took more than 2 seconds
    assert Notice.objects.get().facts == {"share": 11, "errors": 16, "requests": 146, "minutes": 5}
    count(account, NOW, status=200, requests=3, bound=5.0)
    assert kinds() == ["errors.high", "latency.high"]
    assert Notice.objects.get(kind="latency.high").facts == {"milliseconds": 4000, "minutes": 5}
    quiet = NOW + 10 * MINUTE
    assert kinds(quiet - MINUTE) == ["errors.high", "latency.high"]
    assert kinds(quiet) == []
    assert events() == ["opened", "opened", "resolved", "resolved"]


def test_few_requests_say_nothing(account):
    count(account, NOW, status=500, requests=19, bound=5.0)
    assert kinds() == []


def test_api_tokens_are_for_their_users(cast):
    for name, days in (("long", 30), ("short", 5)):
        token_request = TokenRequest(name, Scope.READ, None, NOW + timedelta(days=days))
        api_tokens.issue(cast["victor"], token_request, by=MAX)
    assert kinds(NOW + timedelta(days=2)) == []
    assert kinds(NOW + timedelta(days=24)) == ["api-token.expiring"]
    assert Notice.objects.get().user == cast["victor"]


def test_backups_and_the_disk(settings, tmp_path, monkeypatch):
    settings.OPTIONS = replace(settings.OPTIONS, data=tmp_path, database_url="")
    assert kinds() == []
    last_backup.record(tmp_path, LastBackup(NOW - timedelta(days=8), "there"))
    assert kinds() == ["backup.overdue"]
    last_backup.record(tmp_path, LastBackup(NOW, "there"))
    last_backup.record_failure(tmp_path, BackupFailure(NOW + MINUTE, "the disk is full"))
    monkeypatch.setattr(disk, "space_of", lambda folder: disk.Space(100 << 20, 100 << 30))
    assert kinds() == ["backup.failed", "disk.low"]


def test_drills(settings, tmp_path):
    week = timedelta(days=7)
    settings.OPTIONS = replace(settings.OPTIONS, data=tmp_path, database_url="", drill_every=week)
    assert kinds() == []
    last_backup.record_drill(tmp_path, NOW, "The backup is damaged.")
    assert kinds() == ["backup.drill"]
    last_backup.record_drill(tmp_path, NOW, "")
    assert kinds(NOW + 2 * week) == []
    assert kinds(NOW + 2 * week + MINUTE) == ["backup.drill"]


def test_a_machine_does_not_resolve_what_another_one_has_found(settings, tmp_path, monkeypatch):
    settings.OPTIONS = replace(settings.OPTIONS, data=tmp_path, database_url="postgresql://elsewhere")
    last_backup.record(tmp_path, LastBackup(NOW - timedelta(days=8), "there"))
    assert kinds() == ["backup.overdue"]
    settings.OPTIONS = replace(settings.OPTIONS, data=tmp_path / "other")
    monkeypatch.setattr(socket, "gethostname", lambda: "other")
    assert kinds(NOW + MINUTE) == ["backup.overdue"]
    assert kinds(NOW + DAY + MINUTE) == []


def test_a_condition_that_fails_changes_nothing_and_stops_no_other(account, monkeypatch):
    Account.objects.update(expires_at=NOW + timedelta(days=10))
    later = NOW + timedelta(days=9, hours=1)
    assert kinds(later) == ["account.expiring"]

    def fail(look):
        yield from ()
        raise RuntimeError("this once")

    monkeypatch.setattr(accounts_conditions, "find_expiring", fail)
    with pytest.raises(ExceptionGroup):
        evaluation.evaluate(NOW + timedelta(days=400))
    open_now = Notice.objects.filter(resolved_at=None).values_list("kind", flat=True)
    assert sorted(open_now) == ["account.expiring", "key.old", "key.old"]


@pytest.mark.django_db(transaction=True)
def test_a_lost_database_is_not_the_failure_of_a_condition(account):
    def lose(look):
        yield from ()
        connection.cursor().execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(accounts_conditions, "find_expiring", lose)
        with pytest.raises(OperationalError):
            evaluation.evaluate(NOW)
    connection.close()


@pytest.mark.django_db(transaction=True)
def test_only_one_of_several_processes_evaluates(account, hook):
    Account.objects.update(expires_at=NOW + timedelta(days=10))
    later, done = NOW + timedelta(days=9, hours=1), []
    barrier = threading.Barrier(4)

    def run():
        barrier.wait()
        done.append(periodic.run_exclusively("notices", 60.0, lambda now: evaluation.evaluate(later)))
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [False, False, False, True]
    assert events() == ["opened"]


def test_rolled_back_notices_send_no_events(account, hook):
    Account.objects.update(expires_at=NOW + timedelta(days=10))
    with transaction.atomic():
        assert kinds(NOW + timedelta(days=9, hours=1)) == ["account.expiring"]
        transaction.set_rollback(True)
    assert events() == []


def test_each_kind_has_a_condition_and_a_page(account):
    facts = {"job": 1, "account": "acme"}
    for kind in registry.notice_kinds().values():
        assert callable(import_string(kind.condition.find))
        path = presentation.path_of(Notice(kind=kind, account=account, subject="s" * 64, facts=facts))
        assert resolve(path)


def test_old_notices_and_deliveries_are_deleted(account, hook):
    Account.objects.update(expires_at=NOW + timedelta(days=10))
    evaluation.evaluate(NOW + timedelta(days=9, hours=1))
    Account.objects.update(expires_at=None)
    evaluation.evaluate(NOW + timedelta(days=11))
    evaluation.tidy(NOW + timedelta(days=100))
    assert Notice.objects.count() == 1
    NoticeDelivery.objects.update(due_at=None)
    evaluation.tidy(NOW + timedelta(days=102))
    assert (Notice.objects.count(), NoticeDelivery.objects.count()) == (0, 0)


def test_rules_are_recorded_and_bounded(account):
    done = rules.change(account, MetricsNotice.ERRORS_HIGH, is_on=True, threshold=5, by=MAX)
    assert (done.verb, done.detail, done.after) == (
        "notice.rule",
        {"notice": "errors.high"},
        {"is_on": True, "threshold": 5},
    )
    assert rules.change(account, MetricsNotice.ERRORS_HIGH, is_on=True, threshold=5, by=MAX) is None
    for kind, threshold in ((MetricsNotice.ERRORS_HIGH, 101), (JobNotice.FAILED, 1)):
        with pytest.raises(rules.RuleError):
            rules.change(account, kind, is_on=True, threshold=threshold, by=SERVER)
    with pytest.raises(rules.RuleError):
        rules.change(account, BackupNotice.FAILED, is_on=False, threshold=None, by=SERVER)
    assert Activity.objects.filter(verb="notice.rule").count() == 1

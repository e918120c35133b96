"""Kinds, verbs and states that a newer version stored and this version does not know.

Every column with a member of an enumeration gets an unknown value, and everything that reads it is called.
"""

import io
import json
import traceback
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import models, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.module_loading import import_string

from console.models import ColumnLayout, Invitation, SavedQuery, SavedQueryVersion
from storage.accounts import accounts
from storage.accounts.subject import AccountNotice
from storage.activity import activity
from storage.activity.subject import ActivityVerb
from storage.comments import comments
from storage.comments.content import Subject
from storage.core import registry
from storage.domain.access.actor import Actor, ActorKind, dump_actor
from storage.domain.access.roles import Scope
from storage.domain.entities.changes import Insert, Update
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import AuthenticationFailed, InvalidInput
from storage.domain.refusals import Reason
from storage.domain.requests.series import PeriodCounts, SeriesKind, Traffic, write_counts
from storage.domain.service_properties.properties import ServiceProperties
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits
from storage.health.subject import HealthNotice
from storage.jobs import running
from storage.jobs.states import JobStatus
from storage.metrics.series import WHOLE, start_of
from storage.models import (
    Activity,
    Branch,
    CredentialUse,
    ImportDraft,
    Job,
    JobFile,
    Notice,
    NoticeDelivery,
    NoticeMute,
    NoticeRule,
    PropertyIndex,
    QueryShape,
    RegisteredSas,
    Rehearsal,
    RehearsalClient,
    RehearsalSet,
    RehearsedRequest,
    RequestSeries,
    SeenCredential,
)
from storage.notices import readers, webhooks
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.people.subject import PeopleNotice
from storage.runtime import job_runner
from storage.snapshots import snapshots
from storage.sql.django import execute
from storage.tables import tables
from storage.tables.subject import TableVerb
from tests.console.addresses import ANSWERS, ARGUMENTS
from tests.live_server import ROOT
from tests.requests.test_pages import keep

pytestmark = pytest.mark.django_db

ADA = Actor(ActorKind.USER, "ada", "192.0.2.1", "a browser")
NEWER = "newer"
# model → columns with a stored member of an enumeration; a new one belongs here, and its readers bear any value
MEMBERS = {
    "Account": {"kind", "consistency", "strictness"},
    "Activity": {"verb", "actor_kind"},
    "ApiToken": {"scope"},
    "Branch": {"actor_kind"},
    "CommentThread": {"subject"},
    "CredentialUse": {"authentication"},
    "HistoryActor": {"kind"},
    "ImportDraft": {"mode"},
    "Invitation": {"role"},
    "Job": {"kind", "status", "wish"},
    "Membership": {"role"},
    "Notice": {"kind", "severity"},
    "NoticeDelivery": {"event"},
    "NoticeMute": {"kind"},
    "NoticeRule": {"kind"},
    "PropertyIndex": {"state", "origin"},
    "QueryShape": {"path"},
    "RecordedRequest": {"outcome", "operation", "authentication", "access_path"},
    "RegisteredSas": {"kind"},
    "SeenCredential": {"authentication"},
    "Snapshot": {"reason", "actor_kind"},
    "User": {"theme", "density", "edit_mode", "language"},
    "Webhook": {"format"},
}
# short texts that are none: names, addresses, numbers
TEXTS = {
    "Account": {"name", "label", "colour", "request_digest"},
    "Activity": {"account_name", "address", "request_id"},
    "ApiToken": {"name", "digest", "prefix", "last_used_from"},
    "BlockedSas": {"fingerprint"},
    "Branch": {"source_name", "snapshot_name"},
    "CredentialUse": {"address", "process"},
    "ColumnLayout": {"name", "tables"},
    "DatabaseVersion": {"release"},
    "HistoryActor": {"address", "token"},
    "IdempotencyRecord": {"digest", "fingerprint"},
    "Invitation": {"token_hash"},
    "Notice": {"news"},
    "NoticeReader": {"code_digest"},
    "Presence": {"process"},
    "QueryShape": {"digest"},
    "PeriodicRun": {"name"},  # each version looks for its own periodic work
    "RecordedRequest": {"error", "method", "address", "version"},
    "RegisteredSas": {"fingerprint", "label"},
    "Rehearsal": {"set_name"},
    "RehearsalRate": {"scope"},
    "RehearsalSet": {"name"},
    "RequestSeries": {"process"},
    "SavedQuery": {"slug", "name"},
    "SavedUrl": {"key"},
    "SeenCredential": {"address"},
    "ShortLink": {"key"},
    "Snapshot": {"name"},
    "StoredAccessPolicy": {"identifier", "start", "expiry", "permission"},
    "User": {"time_zone"},
    "Webhook": {"name"},
}


def fields():
    """Return all fields, with the names of their models."""
    return [
        (model.__name__, field)
        for name in ("storage", "console")
        for model in apps.get_app_config(name).get_models()
        for field in model._meta.concrete_fields
    ]


def test_every_column_is_known():
    short = {
        (name, it.name) for name, it in fields() if isinstance(it, models.CharField) and it.max_length <= 64
    }
    numbers = {("Membership", "role"), ("Invitation", "role")}
    listed = {
        (name, column) for table in (MEMBERS, TEXTS) for name, columns in table.items() for column in columns
    }
    missing, others = sorted((short | numbers) - listed), sorted(listed - (short | numbers))
    assert not missing, f"add {missing} to MEMBERS if they have members of an enumeration, else to TEXTS"
    assert not others, f"remove {others} from MEMBERS or TEXTS"


CONSOLE = {"ColumnLayout", "Invitation", "SavedQuery", "SavedQueryVersion", "User"}


class World:
    """An account in which there is one of everything."""

    def __init__(self, account, cast):
        self.account, self.cast = account, cast
        now = timezone.now()
        self.table = tables.create(account, "people", by=ADA)
        entity = Entity(EntityKey("p", "r"), {"Name": EdmValue(Edm.STRING, "Ada")})
        edits.apply(self.table, [Insert(entity)], by=ADA)
        edits.apply(self.table, [Update(entity, ANY, merge=False)], by=ADA)
        self.index = PropertyIndex.objects.create(
            table=self.table,
            name="Name",
            state="failed",
            origin="adaptive",
            error="x",
            reason={"filter": "Name eq ''", "scans": 2, "seconds": 1.0},
        )
        self.undone = activity.record(
            ActivityVerb.UNDO, ADA, account=account, table=self.table, detail={"verb": TableVerb.CHANGE.value}
        )
        self.snapshot = snapshots.take(account, "first", by=ADA)
        Branch.objects.create(
            account=accounts.add("branched"), source=account, source_name="acme", at=now, actor_kind="user",
            actor="ada", masking={"people": {"Name": "hash"}},
        )  # fmt: skip
        self.job = self.add_job(error=Reason.FUTURE.of(moment="x").dump())
        self.waiting = self.add_job(status=JobStatus.WAITING, started_at=None, ended_at=None)
        self.notice = self.add_notice(subject="key1")
        self.personal = self.add_notice(
            account=None,
            user=cast["alice"],
            kind=PeopleNotice.API_TOKEN_EXPIRING,
            facts={"token": "own", "expires_at": now.isoformat()},
        )
        NoticeRule.objects.create(account=account, kind=AccountNotice.KEY_OLD, threshold=30)
        NoticeMute.objects.create(user=cast["alice"], account=account, kind=HealthNotice.DISK_LOW)
        fields = webhooks.WebhookFields("one", "https://example.com/", (AccountNotice.KEY_OLD,))
        _, self.webhook = webhooks.create(account, fields, by=ADA)
        self.delivery = NoticeDelivery.objects.create(
            webhook=self.webhook,
            notice=self.notice,
            event="opened",
            message_id=uuid4(),
            created_at=now,
            due_at=None,
        )
        self.request = keep(account, InvalidInput("x"), searched="Name eq 'x'")
        self.refused = keep(account, AuthenticationFailed())
        counts = PeriodCounts()
        counts.traffic(SeriesKind("QueryEntities", 200)).add(Traffic(1, 1, 1, {3: 1}))
        RequestSeries.objects.create(
            account=account, table_id=WHOLE, minutes=15, period=start_of(now, 15), process="",
            counts=write_counts(counts),
        )  # fmt: skip
        QueryShape.objects.create(
            account=account, table_id=self.table.pk, day=now.date(), digest="x", shape="Name eq …", path="table-scan",
            client="x", requests=1, entities=1,
        )  # fmt: skip
        used = {
            "account": account,
            "authentication": "sas",
            "name": "f" * 64,
            "address": "192.0.2.1",
            "agent": "x",
        }
        SeenCredential.objects.create(
            **used, parameters=[["sv", "2019-02-02"]], first_used_at=now, last_used_at=now
        )
        CredentialUse.objects.create(**used, hour=now, process="", count=1, last_used_at=now)
        self.sas = RegisteredSas.objects.create(
            account=account, fingerprint="f" * 64, kind="table", table_name="people", label="x", author="ada",
            parameters=[["sv", "2019-02-02"], ["tn", "people"], ["sp", "r"], ["se", "2199-01-01"]],
        )  # fmt: skip
        self.secret, self.token = api_tokens.issue(
            cast["ada"], TokenRequest("ci", Scope.MANAGE, None, None), by=ADA
        )
        self.own_secret, self.own_token = api_tokens.issue(
            cast["alice"], TokenRequest("own", Scope.MANAGE, None, None), by=ADA
        )
        Invitation.objects.create(
            token_hash="x",
            account=account,
            invited_by=cast["ada"],
            expires_at=now + timedelta(days=1),
            role=2,
        )
        file = JobFile.objects.create(
            account=account,
            name="a.csv",
            owner="ada",
            size=1,
            is_complete=True,
            expires_at=now + timedelta(days=1),
        )
        self.draft = ImportDraft.objects.create(
            account=account,
            table_name="people",
            owner="ada",
            file=file,
            file_name="a.csv",
            size=1,
            mode="merge",
        )
        self.thread = comments.begin(self.table, Subject(), "hello", author=cast["alice"], by=ADA)[0].thread
        query = SavedQuery.objects.create(
            account=account,
            table_name="people",
            slug="mine",
            name="Mine",
            owner=cast["ada"],
            content={"f": ""},
        )
        SavedQueryVersion.objects.create(
            query=query, number=1, content={"name": "Mine", "description": "", "content": {}}, author="ada"
        )

        self.rehearsal = self.add_rehearsal()
        ColumnLayout.objects.create(account=account, name="Mine", tables="people", columns=["Name"])

    def add_rehearsal(self):
        now, rules = timezone.now(), [{"name": "error", "effect": "error", "when": {"share": 0.5}}]
        RehearsalSet.objects.create(account=self.account, name="mine", rules=rules)
        rehearsal = Rehearsal.objects.create(
            account=self.account, set_name="mine", rules=rules, seed=1, started_at=now,
            ends_at=now + timedelta(hours=1), started_by=dump_actor(ADA),
        )  # fmt: skip
        client = RehearsalClient.objects.create(
            rehearsal=rehearsal, agent="x", credential="key:key1", requests=2, matches=[2]
        )
        for number in (1, 2):
            RehearsedRequest.objects.create(
                rehearsal=rehearsal, client=client, number=number, at=now, request_id=uuid4(),
                exchange={"operation": "QueryEntities", "table": "people", "status": 500, "rules": ["error"]},
            )  # fmt: skip
        return rehearsal

    def add_job(self, **fields):
        now = timezone.now()
        values = {"status": JobStatus.FAILED, "started_at": now, "ended_at": now} | fields
        return Job.objects.create(
            kind="table.index", arguments={"index": self.index.pk, "property": "Name"},
            account=self.account, table=self.table, table_name="people",
            actor={"kind": "user", "name": "ada", "address": "", "agent": "", "request_id": "", "token": "",
                   "label": ""},
            request_id=uuid4(), failures=[{"subject": "1", "refusal": Reason.FUTURE.of(moment="x").dump()}], **values,
        )  # fmt: skip

    def add_notice(self, **fields):
        now = timezone.now()
        values = {
            "account": self.account,
            "kind": AccountNotice.KEY_OLD,
            "facts": {"key": "key1", "days": 400},
        } | fields
        return Notice.objects.create(
            severity="warning", opened_at=now,
            news_at=now, found_at=now, **values,
        )  # fmt: skip

    @property
    def pages(self):
        """Addresses of pages that show what is stored."""
        results = {
            reverse(name, args=ARGUMENTS[name])
            for name, answers in ANSWERS.items()
            if answers.get("GET", {}).get("ada") == 200 and name not in NOT_SHOWING
        }
        request, refused = str(self.request.request_id), str(self.refused.request_id)
        key = "WyJwIiwiciJd"
        for name, *arguments in (
            ("snapshots:change", "acme", "first"),
            ("sas:show", "acme", self.sas.fingerprint),
            ("sas:export", "acme"),
            ("comments:thread", "acme", self.thread.pk),
            ("jobs:show", self.job.pk),
            ("jobs:show", self.waiting.pk),
            ("notices:webhook", "acme", self.webhook.pk),
            ("activity:server_export",),
            ("activity:export", "acme"),
            ("requests:show", "acme", request),
            ("requests:show", "acme", refused),
            ("requests:entity", "acme", request),
            ("requests:export", "acme"),
            ("people:user", self.cast["victor"].pk),
            ("transfer:map", "acme", self.draft.pk),
            ("rehearsal:set", "acme", "mine"),
            ("rehearsal:show", "acme", self.rehearsal.pk),
            ("rehearsal:requests", "acme", self.rehearsal.pk),
            ("queries:run", "acme", "people", "mine"),
            ("queries:versions", "acme", "people", "mine"),
        ):
            results.add(reverse(name, args=arguments))
        results |= {
            reverse("activity:entry", args=("acme", it.pk))
            for it in Activity.objects.filter(account=self.account)
        }
        results |= {f"{reverse('entities:show', args=('acme', 'people'))}?key={key}"}
        results |= {f"{reverse('design:table', args=('acme', 'people'))}?whole=1"}
        results |= {f"{reverse('history:entity', args=('acme', 'people'))}?key={key}"}
        results |= {f"/ui/a/acme/activity/{it}" for it in ("?format=csv", "changes/?format=csv")}
        return sorted(results)

    @property
    def paths(self):
        """Paths of the management API."""
        of = "accounts/acme"
        return (
            "token", "activity", "jobs", f"jobs/{self.job.pk}", f"jobs/{self.waiting.pk}", "notices",
            f"notices/{self.notice.pk}", "notice-mutes", "webhooks", "notice-rules", "accounts", of, f"{of}/tables",
            "manifest", f"{of}/tables/people", f"{of}/tables/people/indexes", f"{of}/tables/people/indexes/Name",
            f"{of}/tables/people/policies", f"{of}/changes?after=oldest",
            f"{of}/tables/people/history?pk=p&rk=r", f"{of}/tables/people/design", f"{of}/metrics",
            f"{of}/snapshots", f"{of}/snapshots/first",
            f"{of}/branches", "accounts/branched", f"{of}/sas", f"{of}/sas/{self.sas.fingerprint}", f"{of}/members",
            f"{of}/webhooks", f"{of}/webhooks/{self.webhook.pk}", f"{of}/webhooks/{self.webhook.pk}/deliveries",
            f"{of}/notice-rules", f"{of}/comments", f"{of}/comments/{self.thread.pk}",
            f"{of}/comments/{self.thread.pk}/replies", f"{of}/requests", f"{of}/requests/{self.request.request_id}",
            f"{of}/requests/{self.refused.request_id}", f"{of}/request-statistics", f"{of}/activity", "users",
            f"{of}/invitations", f"{of}/tables/people/queries", f"{of}/keys", "users/ada/tokens",
            f"{of}/rehearsals", f"{of}/rehearsals/{self.rehearsal.pk}", f"{of}/rehearsals/{self.rehearsal.pk}/requests",
            f"{of}/rehearsal-sets", f"{of}/rehearsal-sets/mine", f"{of}/service-properties", f"{of}/snapshot-schedule",
        )  # fmt: skip


NOT_SHOWING = {"help:index"}
# paths whose answers depend on the member who asks
OWN_PATHS = ("token", "accounts", "accounts/acme", "jobs", "notices", "manifest", "users/alice/tokens")
COMMANDS = (
    ("job", "list"),
    ("notice", "list"),
    ("requests", "acme"),
    ("snapshot", "list", "acme"),
    ("branch", "list", "acme"),
    ("index", "list", "acme", "people"),
    ("user", "list"),
    ("token", "list"),
    ("account", "list"),
    ("doctor",),
)


def ask(world):
    """Ask everything; return what goes wrong, as errors of the server and exceptions."""
    wrong = {}
    clients = {}
    for name in ("alice", "ada"):
        clients[name] = Client(raise_request_exception=True)
        clients[name].force_login(world.cast[name])

    def check(what, do):
        try:
            with transaction.atomic():
                answer = do()
                transaction.set_rollback(True)
        except CommandError:
            pass  # a sentence
        except Exception as error:
            files = traceback.extract_tb(error.__traceback__)
            frame = [
                it for it in files if it.filename.startswith(str(ROOT)) and "/.venv/" not in it.filename
            ][-1]
            wrong.setdefault(f"{error!r} in {frame.filename}:{frame.lineno}", what)
        else:
            if getattr(answer, "status_code", 200) >= 500:
                wrong[f"{what}: {answer.status_code}"] = what

    for path in world.pages:
        check(f"GET {path}", partial(clients["ada"].get, path))
    for path in ("/ui/", "/ui/a/acme/", "/ui/a/acme/overview/", "/ui/jobs/tray/", "/ui/notices/", "/ui/me/"):
        check(f"GET {path} by alice", partial(clients["alice"].get, path))
    for secret, paths in ((world.secret, world.paths), (world.own_secret, OWN_PATHS)):
        client = Client(headers={"Authorization": f"Bearer {secret}"})
        for path in paths:
            check(f"API {path}", partial(client.get, f"/ui/api/v1/{path}"))
    for command in COMMANDS:
        check(" ".join(command), partial(call_command, *command, stdout=io.StringIO()))
    now = timezone.now()
    for work in registry.periodic():
        check(work.name, partial(import_string(work.do), *([now] if work.takes_time else [])))
    for path in (*registry.tidying().values(), *registry.daily()):
        check(path, partial(import_string(path), now))
    check("jobs", lambda: running.run_some(job_runner.KINDS, lambda seconds: True))
    check("e-mail", lambda: readers.to_mail(world.notice))
    return [f"{problem}: {what}" for problem, what in wrong.items()]


def find_model(name):
    return apps.get_model("console" if name in CONSOLE else "storage", name)


@contextmanager
def unlogged():
    """Let rows be changed to which triggers only add, as those of the activity log."""
    execute("SET LOCAL session_replication_role = replica")
    yield
    execute("SET LOCAL session_replication_role = origin")


def store(columns):
    """Give all rows a value in these columns of their models that this version does not know."""
    for name, column in sorted(columns):
        model = find_model(name)
        field = model._meta.get_field(column)
        value = 77 if isinstance(field, models.PositiveSmallIntegerField) else NEWER[: field.max_length]
        assert model._base_manager.update(**{column: value}), f"The world has no {name}."


@pytest.fixture
def world(account, cast, settings):
    settings.CONSOLE_URL = "https://example.com"
    return World(account, cast)


# columns that hide what others say, and are looked at by themselves
KINDS = {
    (name, column)
    for name, columns in MEMBERS.items()
    for column in columns & {"kind", "verb", "subject", "reason", "outcome", "state", "event"}
    if name != "Account"
}
ALONE = [{("Account", "kind")}, {("Membership", "role"), ("Invitation", "role")}, {("ApiToken", "scope")}]
OTHERS = {(name, column) for name, columns in MEMBERS.items() for column in columns}.difference(KINDS, *ALONE)


@pytest.mark.long
@pytest.mark.slow
def test_kinds_that_a_newer_version_knows_are_read(world):
    with unlogged():
        store(KINDS)
    assert "\n".join(ask(world)) == ""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("columns", ALONE, ids=["accounts", "roles", "scopes"])
def test_members_that_hide_the_others_are_read(world, columns):
    with unlogged():
        store(columns)
    assert "\n".join(ask(world)) == ""


# JSON documents, extended as a newer version might do
DOCUMENTS = [
    (
        "Account",
        "service_properties",
        lambda it: {**(it or asdict(ServiceProperties())), "newer": {"newer": 1}},
    ),
    ("Activity", "detail", lambda it: {**it, "verb": NEWER, "newer": NEWER}),
    ("Branch", "masking", lambda it: {"people": {"Name": NEWER}}),
    ("Job", "actor", lambda it: {**it, "kind": NEWER, "newer": 1}),
    ("Job", "arguments", lambda it: {**it, "newer": 1}),
    ("Job", "counts", lambda it: {**it, "newer": 1}),
    ("Job", "error", lambda it: json.dumps({"reason": "NEWER", "facts": {"newer": 1}})),
    (
        "Job",
        "failures",
        lambda it: [{"subject": "1", "refusal": NEWER, "details": {"newer": NEWER}, "newer": 1}],
    ),
    ("Job", "result", lambda it: {**it, "newer": 1}),
    ("Notice", "facts", lambda it: {**it, "newer": 1}),
    ("PropertyIndex", "reason", lambda it: {**it, "newer": 1}),
    (
        "RecordedRequest",
        "fault",
        lambda it: it and {**it, "address": {"rule": NEWER, "segments": 1, "length": 1}},
    ),
    ("RecordedRequest", "report", lambda it: it and replaced(it)),
    ("RequestSeries", "counts", lambda it: [[[NEWER, 999, NEWER, *kind[3:]] for kind in it[0]], *it[1:]]),
    ("SavedQuery", "content", lambda it: {**it, "newer": "1"}),
    ("Snapshot", "service_properties", lambda it: {**(it or asdict(ServiceProperties())), "newer": 1}),
    ("Webhook", "kinds", lambda it: [*it, NEWER]),
    ("Activity", "after", lambda it: it and {**it, "newer": NEWER}),
    ("Activity", "before", lambda it: it and {**it, "newer": NEWER}),
    ("ColumnLayout", "columns", lambda it: [*it, "-newer:x"]),
    ("ImportDraft", "mapping", lambda it: json.dumps({"newer": NEWER})),
    ("ImportDraft", "wishes", lambda it: json.dumps({"newer": NEWER, "format": NEWER})),
    ("RecordedRequest", "options", lambda it: [*(it or []), [NEWER, NEWER]]),
    ("RegisteredSas", "parameters", lambda it: [*it, ["newer", NEWER]]),
    ("Rehearsal", "rules", lambda it: [*it, {"name": "b", "effect": NEWER, "newer": 1}]),
    ("Rehearsal", "started_by", lambda it: {**it, "kind": NEWER, "newer": 1}),
    ("RehearsalClient", "matches", lambda it: [*it, 3]),
    ("RehearsalSet", "rules", lambda it: [{**it[0], "effect": NEWER, "when": {"newer": 1}}]),
    (
        "RehearsedRequest",
        "exchange",
        lambda it: {**it, "operation": NEWER, "newer": 1, "rules": [NEWER], "delivery": NEWER},
    ),
    ("SavedQueryVersion", "content", lambda it: {**it, "newer": NEWER}),
    ("SeenCredential", "parameters", lambda it: [*it, ["newer", NEWER]]),
]
# documents that hold names, numbers and dates only, or are looked at by the code that wrote them
PLAIN = {
    "Account": {"labels", "networks"},
    "Activity": {"keys", "recorded"},
    "Branch": {"originals"},
    "CopiedTable": {"progress"},
    "Job": {"state"},
    "OldRows": {"last"},
    "PropertyOrder": {"names", "widths"},
    "RecordedRequest": {"candidates"},
    "Setup": {"token_hashes"},
    "SnapshotTable": {"policies", "tags"},
    "Table": {"declined_indexes", "tags"},
}


def test_every_document_is_known():
    documents = {(model, it.name) for model, it in fields() if isinstance(it, models.JSONField)}
    texts = {("ImportDraft", "mapping"), ("ImportDraft", "wishes"), ("Job", "error")}
    plain = {(model, name) for model, names in PLAIN.items() for name in names}
    assert documents | texts == plain | {(model, name) for model, name, _ in DOCUMENTS}, (
        "Say it in this file."
    )


def replaced(report):
    """Return a report with members of a newer version in all its parts."""
    return {
        **report,
        "findings": [*report["findings"], {"mistake": "NEWER"}],
        "fields": [*report["fields"], ["x", "y", NEWER, True]],
        "error": "Newer",
    }


@pytest.mark.slow
@pytest.mark.long
def test_documents_and_other_members_of_a_newer_version_are_read(world):
    with unlogged():
        for name, column, write in DOCUMENTS:
            model = find_model(name)
            rows = list(model._base_manager.all())
            assert rows, f"The world has no {name}."
            for row in rows:
                setattr(row, column, write(getattr(row, column)))
                model._base_manager.filter(pk=row.pk).update(**{column: getattr(row, column)})
        store(OTHERS)
    assert "\n".join(ask(world)) == ""


def test_jobs_that_only_a_newer_version_can_do_wait_for_it(world):
    waiting = Job.objects.filter(pk=world.waiting.pk)
    before = waiting.values().get()
    for values in (
        {"kind": NEWER},
        {"status": NEWER},
        {"wish": NEWER},
        {"arguments": {**world.waiting.arguments, "newer": 1}},
        {"state": {"newer": 1}},
    ):
        waiting.update(
            **{name: before[name] for name in ("kind", "status", "wish", "arguments", "state")} | values
        )
        running.run_some(job_runner.KINDS, lambda seconds: True)
        result = waiting.values().get()
        assert (result["attempts"], result["ended_at"]) == (0, None), values
    waiting.update(**before)
    assert running.run_some(job_runner.KINDS, lambda seconds: True)
    assert waiting.get().started_at is not None

"""Long operations: what each one starts from, and the request that runs it, once or again after a kill."""

import io
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

from django.utils import timezone

from storage.access import policies
from storage.access.subject import AccessVerb
from storage.account_files import account_copies, account_export, account_export_jobs, account_import
from storage.accounts import accounts, removal
from storage.accounts.refusals import AccountError, AccountExists
from storage.activity.subject import ActivityVerb
from storage.activity.undoing import CannotUndo, Reason
from storage.branches import branches, snapshot_restores
from storage.branches.branches import BranchRequest
from storage.branches.snapshot_restores import RestoreRequest
from storage.bulk_edit import bulk_edit_jobs
from storage.bulk_edit.bulk_edit_work import BulkEditRequest
from storage.cluster import distribution, distribution_jobs, relations
from storage.cluster.distribution import DistributionError
from storage.compare import applying, comparing, sides
from storage.compare.applying import Selection, Target
from storage.compare.side_names import SideName
from storage.compare.subject import CompareVerb
from storage.core.verbs import Verb
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Delete, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.masking import read_rules
from storage.domain.errors import ResourceNotFound, TableAlreadyExists
from storage.domain.service_properties.properties import Logging
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.domain.values.kinds import AccountKind
from storage.editing.input_context import InputContext
from storage.entities import edits, entities
from storage.entities.writing import WriteMode
from storage.history.changes import ChangeFilter
from storage.history.subject import HistoryVerb
from storage.jobs import files, jobs, running
from storage.jobs.kinds import JobKind, NoState, Step
from storage.manifest import applying as manifests
from storage.manifest.declared import DeclaredAccount, DeclaredTable
from storage.models import Account, Activity, Job, PropertyIndex
from storage.relations import table_relations
from storage.runtime import job_runner
from storage.snapshots import snapshots
from storage.snapshots.subject import SnapshotVerb
from storage.sql import django as sql
from storage.tables import indexes, tables
from storage.tables.subject import TableVerb
from storage.tabular.file import RowFile
from storage.tabular.mapping import ColumnMapping
from storage.transfer import export_jobs, import_jobs
from storage.transfer.exports import Export
from storage.transfer.imports import Import
from storage.transfer.subject import TransferVerb
from storage.undo import data_undo, undo

ADA = Actor(ActorKind.USER, "ada")
SCRIPT = Actor(ActorKind.KEY, "script")
READER = [SignedIdentifier("reader", AccessPolicy("", "", "r"))]
EVERYTHING = RestoreRequest(with_policies=True, with_settings=True, deletes_new=True)


@dataclass(frozen=True)
class Case:
    """An operation to interrupt."""

    prepare: Callable[[], object]
    request: Callable[[], object]
    undone: tuple[Verb, ...] = ()  # verbs of activities whose undo reverts the interrupted operation
    in_cluster: bool = False  # whether the database has the stand-ins of Citus


def put(account, name, by=SERVER, **values):
    """Upsert entities by their RowKeys; None deletes one."""
    folded = name if account.kind == AccountKind.COSMOS else name.lower()
    table = tables.find(account, folded) or tables.create(account, name)
    changes = [
        Delete(EntityKey("p", key), ANY)
        if value is None
        else Upsert(Entity(EntityKey("p", key), {"Name": EdmValue(Edm.STRING, value)}), merge=False)
        for key, value in values.items()
    ]
    edits.apply(table, changes, by=by)
    return table


def shop():
    account = accounts.add("shop")
    for name in ("Customers", "Orders", "Prices"):
        put(account, name, a="Ada", b="Bob", c="Cy")
    policies.replace_by_name(account, "orders", READER)
    return account


def change(account, by=SERVER):
    """Change entities in all tables, delete a table, and create another one."""
    put(account, "Customers", by, a="Eve", b=None, d="Dan")
    put(account, "Orders", by, a="Eve", d="Dan")
    policies.replace_by_name(account, "orders", [])
    tables.delete(account, "prices", keep=tables.DELETED_TABLE_RETENTION)
    put(account, "New", by, a="Ada")


def tables_of_a_client():
    """Create, use and delete tables by the statements of the protocol, and do what the server does later."""
    account = find("shop")
    for name in ("Used", "Unused"):
        with suppress(TableAlreadyExists):
            sql.run(tables.creation(account, name, by=SCRIPT))
    put(account, "Used", SCRIPT, a="Ada")
    for name in ("Unused", "Prices"):
        sql.run(tables.deletion(account, name, by=SCRIPT))
    table_relations.make_pending()
    tables.drop_expired_tables()


def find(name):
    return Account.objects.get(name=name)


def branch():
    rules = {"customers": read_rules({"Name": "hash"})}
    try:
        branches.create(find("shop"), BranchRequest("twig", rules=rules), by=ADA)
    except AccountExists:
        assert branches.is_complete(branches.find(find("twig")))


def copy(kind):
    try:
        account_copies.copy(find("shop"), "there", kind, by=ADA)
    except AccountExists:
        pass


def import_():
    file = io.BytesIO()
    account_export.export(find("shop"), file)
    try:
        account_import.load(account_import.check(file, "there"), by=ADA)
    except AccountExists:
        pass


def export():
    if not Job.objects.exists():
        jobs.start_requested(account_export_jobs.request(find("shop")), by=ADA)
    job_runner.run_all()


def changed_since_a_snapshot():
    account = shop()
    snapshots.take(account, "before")
    change(account)


def restore():
    return snapshot_restores.restore(snapshots.get(find("shop"), "before"), EVERYTHING, by=ADA)


def changed_branch():
    shop()
    branch()
    change(find("twig"))


def reset():
    snapshot_restores.reset(branches.find(find("twig")), by=ADA)


def written_by_a_script():
    account = shop()
    put(account, "Customers", SCRIPT, a="Eve", b=None, d="Dan")
    put(account, "Orders", SCRIPT, a="Eve", d="Dan")
    put(account, "Prices", SCRIPT, c=None)


def undo_many():
    wanted = ChangeFilter(actors=(("key", "script"),))
    running.complete(data_undo.request(find("shop"), wanted), by=ADA)


def undo_latest(verb):
    done = Activity.objects.filter(verb=verb).latest("pk")
    try:
        undo.undo(done, ADA)
    except CannotUndo as cannot:
        # by the request that was killed
        if cannot.reason not in (Reason.ALREADY_UNDONE, Reason.CHANGED_SINCE):
            raise


def side(name):
    return sides.find(SideName(name), find(name))


def two_accounts():
    source = shop()
    account_copies.copy(source, "there", AccountKind.STORAGE)
    change(source)


def apply():
    comparison = comparing.compare(side("shop"), side("there"))
    names = [it.name for it in comparison.tables]
    applying.apply(comparison, Target.RIGHT, Selection(names, policies=True), by=ADA)


def many_tables():
    account = shop()
    for number in range(4):
        tables.create(account, f"table{number}")


def delete_account():
    try:
        removal.remove("shop", with_tables=True, by=ADA)
    except AccountError:
        assert not Account.objects.filter(name="shop").exists()


def delete_table():
    try:
        tables.delete(find("shop"), "customers", by=ADA)
    except ResourceNotFound:
        pass
    tables.drop_expired_tables()


def bulk_edit():
    """Apply an edit that has another effect when it is done twice."""
    operations = ({"op": "set", "property": "Name", "expression": "Name + '!'"},)
    table = tables.get(find("shop"), "customers")
    if not Job.objects.exists():
        bulk_edit_jobs.start(table, BulkEditRequest("", operations), by=ADA)
    job_runner.run_all()


def with_old_copies():
    """Make three copies: up to date, different, and left over."""
    put(shop(), "Copies", Ada="Ada", Bob="Eve", Zoe="Zoe")


def second_copies():
    """Make the copies that are missing in another table, and repair the others."""
    operation = {
        "op": "second-copy",
        "row_key": "Name",
        "table": "Copies",
        "replace": True,
        "delete_left_over": True,
    }
    table = tables.get(find("shop"), "customers")
    if not Job.objects.exists():
        bulk_edit_jobs.start(table, BulkEditRequest("", (operation,)), by=ADA)
    job_runner.run_all()


ROWS = "PartitionKey,RowKey,Name\n" + "".join(f"se,{number},x\n" for number in range(10))
KEYS = ColumnMapping("{PartitionKey}", "{RowKey}")


def import_rows():
    file = RowFile(lambda: io.BytesIO(ROWS.encode()))
    chunks = file.chunks(KEYS, InputContext(timezone.now()))
    import_jobs.run(Import(tables.get(find("shop"), "customers"), WriteMode.REPLACE, ADA), chunks)


def with_file(start):
    """Start an import of a file, or its check, as a job; the last row cannot be imported."""
    table = tables.get(find("shop"), "customers")
    if not Job.objects.exists():
        file = files.create("rows.csv", account=table.account, by=ADA)
        files.upload(file, [ROWS.encode(), b"se,a/b,x\n"])
        start(table, file, import_jobs.open_rows(file), KEYS, WriteMode.REPLACE, by=ADA)
    job_runner.run_all()


def export_table():
    if not Job.objects.exists():
        export_jobs.start(Export(tables.get(find("shop"), "customers"), "ndjson", ADA))
    job_runner.run_all()


def index():
    table = tables.get(find("shop"), "customers")
    if not PropertyIndex.objects.filter(table=table).exists():
        indexes.add(table, "Name", by=ADA)
    job_runner.run_all()


@dataclass(frozen=True, slots=True)
class Counted:
    next: int = 0


class Counting(JobKind[NoState, Counted]):
    """Add 1 to a property in each step, so that a step that is done twice, or not at all, shows."""

    name, arguments, state, capability = "test.count", NoState, Counted, Capability.WRITE

    def begin(self, run):
        return Step(Counted(), total=9)

    def step(self, run, state):
        entity = entities.get(run.table, EntityKey("p", "a"))
        count = read_stored(entity).properties.get("Count", EdmValue(Edm.INT32, 0)).value + 1
        changed = Entity(EntityKey("p", "a"), {"Count": EdmValue(Edm.INT32, count)})
        inserted = Entity(EntityKey("p", f"job {state.next}"), {})
        edits.apply(run.table, [Upsert(changed, merge=True), Insert(inserted)], by=run.by)
        return Step(Counted(state.next + 1), done=1, is_finished=state.next == 8)


COUNTING = Counting()
job_runner.KINDS = {**job_runner.KINDS, COUNTING.name: COUNTING}


def count():
    table = tables.get(find("shop"), "customers")
    if not Job.objects.exists():
        jobs.start(COUNTING, NoState(), account=table.account, table=table, by=ADA)
    job_runner.run_all()


def distribute(*, distributed):
    table = tables.get(find("shop"), "customers")
    try:
        distribution_jobs.ask(table, distributed=distributed, by=ADA)
    except DistributionError:
        pass  # it was asked for, or is done
    job_runner.run_all()


def helped_shop():
    """Make a shop whose helpers are on the nodes already and need not be sent again."""
    shop()
    relations.spread_helpers()


def distributed_shop():
    distribution.distribute(tables.get(shop(), "customers"))


MANIFEST = {
    "another": DeclaredAccount(tables={"Parts": DeclaredTable(indexes=["Weight"])}),
    "shop": DeclaredAccount(
        service_properties={"logging": asdict(Logging(write=True))},
        tables={
            "Customers": DeclaredTable(indexes=["Name"], policies={"reader": {"permission": "r"}}),
            "New": DeclaredTable(policies={"writer": {"permission": "a"}}),
            "Prices": None,
        },
    ),
}


def apply_manifest():
    manifests.apply(MANIFEST, by=ADA)
    job_runner.run_all()


CASES = {
    "branch": Case(shop, branch),
    "copy": Case(shop, lambda: copy(AccountKind.STORAGE)),
    "copy to Cosmos DB": Case(
        lambda: policies.replace_by_name(shop(), "orders", []), lambda: copy(AccountKind.COSMOS)
    ),
    "import": Case(shop, import_),
    "export": Case(shop, export),
    "restore": Case(changed_since_a_snapshot, restore, (SnapshotVerb.RESTORE,)),
    "reset": Case(changed_branch, reset),
    "undo of many": Case(written_by_a_script, undo_many, (HistoryVerb.REVERT,)),
    "undo of an undo": Case(
        lambda: (written_by_a_script(), undo_many()),
        lambda: undo_latest(HistoryVerb.REVERT),
        (ActivityVerb.UNDO,),
    ),
    "undo of a restore": Case(
        lambda: (changed_since_a_snapshot(), restore()),
        lambda: undo_latest(SnapshotVerb.RESTORE),
        (ActivityVerb.UNDO,),
    ),
    "apply": Case(
        two_accounts, apply, (CompareVerb.APPLY, TableVerb.CREATE, TableVerb.DELETE, AccessVerb.POLICIES_SET)
    ),
    "manifest": Case(shop, apply_manifest),
    "deletion of an account": Case(many_tables, delete_account),
    "tables of a client": Case(shop, tables_of_a_client),
    "deletion of a table": Case(shop, delete_table),
    "bulk edit": Case(shop, bulk_edit),
    "second copies": Case(with_old_copies, second_copies),
    "import of rows": Case(shop, import_rows, (TransferVerb.IMPORT,)),
    "import of a file": Case(shop, lambda: with_file(import_jobs.start)),
    "check of a file": Case(shop, lambda: with_file(import_jobs.start_check)),
    "export of a table": Case(shop, export_table),
    "index": Case(shop, index),
    "job": Case(shop, count),
    "distribution": Case(helped_shop, lambda: distribute(distributed=True), in_cluster=True),
    "gathering": Case(distributed_shop, lambda: distribute(distributed=False), in_cluster=True),
}

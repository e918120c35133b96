"""Imports prepared by a user in steps: upload, mapping, check, repair, import."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from storage.accounts import accounts
from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.refusals import Reason
from storage.domain.values.edm import EdmValue
from storage.domain.values.kinds import AccountKind
from storage.editing.input_context import InputContext
from storage.entities import entities
from storage.entities.writing import WriteMode
from storage.jobs import files, jobs
from storage.jobs.jobs import JobFilter
from storage.jobs.states import JobStatus
from storage.models import Account, ImportDraft, Job, JobFile
from storage.tables import tables
from storage.tabular import proposals, rejects
from storage.tabular.entities import Chunk
from storage.tabular.file import RowFile, Sample
from storage.tabular.layout import FileFormat, FileRefused, Wishes
from storage.tabular.mapping import ColumnMapping, MappingRefused
from storage.tabular.proposals import Proposal
from storage.tabular.rejects import RejectGroup, Repair
from storage.transfer import import_jobs, samples, uploads

SAMPLE: Final = 5  # rows that are shown as entities
LISTED: Final = 20  # drafts


@dataclass(frozen=True, slots=True)
class DraftFile:
    """File of a draft with its first rows and the proposed mapping.

    ``mapping`` is the draft's, or that of the last import into the table if it fits, or the proposed one,
    with keys if they are unambiguous.
    """

    rows: RowFile
    sample: Sample
    proposal: Proposal
    mapping: ColumnMapping
    is_kept: bool


@dataclass(frozen=True, slots=True)
class SampleChange:
    """Properties of an entity before and after an import; empty before for a new one."""

    key: EntityKey
    before: Mapping[str, EdmValue]
    after: Mapping[str, EdmValue]


@transaction.atomic
def create(
    account: Account, table_name: str, name: str, size: int, *, by: Actor, language: str = ""
) -> ImportDraft:
    """Create a draft for an upload of ``size`` bytes; ``language`` is the user's, such as tr.

    Raises UploadTooLarge, and StorageError if the table cannot be written or its name is invalid.
    """
    accounts.check_writable(account)
    table = tables.get_or_new(account, table_name)
    file = uploads.begin(account, name, size, by=by)
    return ImportDraft.objects.create(
        account=account,
        table_name=table.name,
        owner=files.owner_of(by),
        file=file,
        file_name=file.name,
        size=size,
        wishes=json.dumps({"language": language}),
        mode=_imported(account, table.name).values_list("mode", flat=True).first() or WriteMode.MERGE.value,
    )


def forget_user(user: str) -> None:
    """Delete the drafts of a deleted user and release the files, so that a later user of the name does not get them."""
    ImportDraft.objects.filter(owner=user).delete()
    files.disown(user)


def get(account: Account, pk: int, *, by: Actor) -> ImportDraft | None:
    """Return a user's draft; None if it has expired."""
    found = ImportDraft.objects.filter(pk=pk, account=account, owner=files.owner_of(by))
    return found.select_related("file", "account", "job__account", "check_job__account").first()


def listed(account: Account, table_name: str = "", *, by: Actor) -> list[ImportDraft]:
    """Return a user's drafts with a whole file that no import has taken, into one table or any; newest first."""
    drafts = ImportDraft.objects.filter(account=account, owner=files.owner_of(by), file__size=F("size"))
    if table_name:
        drafts = drafts.filter(table_name__iexact=table_name)
    return list(drafts.select_related("file").order_by("-pk")[:LISTED])


@transaction.atomic
def discard(draft: ImportDraft) -> None:
    """Delete a draft with its file and its check; one whose import has started stays."""
    _lock(draft)
    if draft.file is None:
        return
    _forget_check(draft)
    draft.delete()
    files.discard(draft.file)


def receive(draft: ImportDraft, start: int, content: bytes, *, by: Actor) -> int:
    """Write a piece of the file; return the number of bytes stored, where the upload continues.

    Raises UploadTooLarge, as concurrent uploads share a quota.
    """
    assert draft.file is not None
    return uploads.receive(draft.file, draft.size, start, content, by=by)


def read(draft: ImportDraft) -> DraftFile:
    """Read the beginning of a draft's file, not in a transaction; raises the errors of samples.take."""
    taken = samples.take(_file(draft), wishes_of(draft))
    rows, sample, proposal = taken.rows, taken.sample, taken.proposal
    if stored := _load_mapping(draft.mapping):
        return DraftFile(rows, sample, proposal, stored, is_kept=False)
    kept = _kept_mapping(draft, proposal)
    mapping = kept or proposals.with_likely_keys(proposal)
    return DraftFile(rows, sample, proposal, mapping, is_kept=kept is not None)


def _kept_mapping(draft: ImportDraft, proposal: Proposal) -> ColumnMapping | None:
    """Return the mapping of the last import into a table if it fits the file; None otherwise."""
    last = _imported(draft.account, draft.table_name).values_list("mapping", flat=True).first()
    mapping = _load_mapping(last or "")
    if mapping is None:
        return None
    known = {it.column.source for it in proposal.columns}
    if not known >= {it.source for it in mapping.columns}:
        return None
    try:
        mapping.check(proposal.names)
    except MappingRefused:
        return None
    return proposals.with_others(proposal, mapping)


def _load_mapping(stored: str) -> ColumnMapping | None:
    """Return a stored mapping; None without one, or for one that only a newer version knows."""
    try:
        return ColumnMapping.load(json.loads(stored)) if stored else None
    except MappingRefused:
        return None


def _mode_of(draft: ImportDraft) -> WriteMode:
    """Return the mode of a draft; raises MappingRefused for one that only a newer version knows."""
    try:
        return WriteMode(draft.mode)
    except ValueError as error:
        raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why=str(error)) from None


def _imported(account: Account, table_name: str) -> QuerySet[ImportDraft]:
    """Return the started imports into a table, newest first."""
    found = ImportDraft.objects.filter(account=account, table_name__iexact=table_name, file=None)
    return found.order_by("-pk")


def wishes_of(draft: ImportDraft) -> Wishes:
    """Return how to read the file of a draft; what only a newer version knows is left to detection."""
    stored = json.loads(draft.wishes) if draft.wishes else {}
    values = {field.name: stored[field.name] for field in fields(Wishes) if field.name in stored}
    format_ = FileFormat(values["format"]) if values.get("format") in tuple(FileFormat) else None
    known = {"name": draft.file_name, **values, "format": format_}
    return Wishes(**{**known, "columns": tuple(values.get("columns", ()))})


def read_otherwise(draft: ImportDraft, wishes: Wishes) -> None:
    """Change how the file is read, and discard the mapping if its columns change.

    Not allowed in a transaction; raises the errors of samples.take.
    """
    before = _column_names(draft)
    after = samples.take(_file(draft), wishes).proposal.names
    with transaction.atomic():
        _lock(draft)
        draft.wishes = json.dumps(asdict(wishes))
        if after != before:
            draft.mapping = ""
        _forget_check(draft)
        draft.save(update_fields=("wishes", "mapping", "check_job"))


def _column_names(draft: ImportDraft) -> Sequence[str] | None:
    """Return the column names of the file; None if it is unreadable."""
    try:
        return read(draft).proposal.names
    except FileRefused:
        return None


@transaction.atomic
def save_mapping(draft: ImportDraft, mapping: ColumnMapping, mode: WriteMode) -> None:
    """Store a changed mapping and mode, which invalidates the check."""
    _lock(draft)
    before = draft.mapping, draft.mode
    draft.mapping, draft.mode = json.dumps(mapping.dump()), mode.value
    if (draft.mapping, draft.mode) != before:
        _forget_check(draft)
    draft.save(update_fields=("mapping", "mode", "check_job"))


def _lock(draft: ImportDraft) -> None:
    """Lock and reload a draft, as the page saves while the user types."""
    draft.refresh_from_db(from_queryset=ImportDraft.objects.select_for_update())


def _forget_check(draft: ImportDraft) -> None:
    if draft.check_job is not None:
        jobs.abandon(jobs.find(JobFilter()).filter(pk=draft.check_job.pk))
    draft.check_job = None


def sample(draft: ImportDraft, found: DraftFile) -> Chunk:
    """Convert the first rows of a draft; raises MappingRefused."""
    context = InputContext(timezone.now(), AccountKind(draft.account.kind))
    return found.sample.first(SAMPLE, found.mapping, context)


def sample_changes(draft: ImportDraft) -> list[SampleChange]:
    """Return the effect of the first rows on their entities; raises FileRefused or MappingRefused."""
    table, mode = tables.get_or_new(draft.account, draft.table_name), _mode_of(draft)
    read_rows = [entity for _row, entity in sample(draft, read(draft)).entities]
    keys = {entity.key for entity in read_rows}
    stored = entities.get_many(table, keys) if table.pk is not None else []
    now = {it.key: read_stored(it).properties for it in stored}
    changes = []
    for entity in read_rows:
        before = now.get(entity.key, {})
        if entity.key in now and mode in (WriteMode.SKIP, WriteMode.INSERT):
            continue
        kept = before if mode is WriteMode.MERGE else {}
        changes.append(SampleChange(entity.key, before, {**kept, **entity.properties}))
    return changes


def check(draft: ImportDraft, *, by: Actor, left: Sequence[RejectGroup] = ()) -> Job:
    """Start a job that previews the import; raises MappingRefused if the mapping does not fit the file.

    ``left`` are groups of rows known to be still rejected.
    """
    accounts.check_writable(draft.account)
    draft_file = read(draft)
    _require_fit(draft_file)
    table, mode = tables.get_or_new(draft.account, draft.table_name), _mode_of(draft)
    with transaction.atomic():
        _forget_check(draft)
        job = import_jobs.start_check(
            table, _file(draft), draft_file.rows, draft_file.mapping, mode, by=by, left=left
        )
        draft.check_job, draft.mapping = job, json.dumps(draft_file.mapping.dump())
        draft.save(update_fields=("check_job", "mapping"))
    return job


def is_checked(draft: ImportDraft) -> bool:
    """Return whether the import in its present setup was completely checked."""
    return draft.check_job is not None and draft.check_job.status == JobStatus.DONE


def repair(draft: ImportDraft, group: RejectGroup, how: Repair, *, by: Actor) -> Job:
    """Adapt the mapping or mode so that a group of rows is no longer rejected, and check again.

    All rows are read again, about half a minute per million; other groups can be repaired meanwhile.
    """
    known = [] if draft.check_job is None else import_jobs.groups_of(draft.check_job)
    left = [it for it in known if not rejects.is_repaired(it, group, how)]
    mapping, mode = ColumnMapping.load(json.loads(draft.mapping)), _mode_of(draft)
    if how in (Repair.SKIP, Repair.REPLACE):
        mode = WriteMode.SKIP if how is Repair.SKIP else WriteMode.REPLACE
    save_mapping(draft, rejects.repair(mapping, group, how), mode)
    return check(draft, by=by, left=left)


def run(draft: ImportDraft, *, by: Actor) -> Job:
    """Start the import as a job, which takes the file; a missing table is created.

    Not allowed in a transaction; raises the errors of samples.take, MappingRefused or TooMuchFileWork.
    """
    while True:
        if draft.job is not None:
            return draft.job
        if draft.mapping:
            # refuses a mapping of a newer version, instead of a guess
            ColumnMapping.load(json.loads(draft.mapping))
        draft_file = read(draft)
        _require_fit(draft_file)
        job = _run(draft, draft_file, by=by)
        if job is not None:
            return job
        draft = ImportDraft.objects.select_related("account", "file", "job__account").get(pk=draft.pk)


@transaction.atomic
def _run(read_from: ImportDraft, draft_file: DraftFile, *, by: Actor) -> Job | None:
    """Start the import as read from a draft; None if another request has changed the draft since."""
    draft = (
        ImportDraft.objects.select_for_update(of=("self",))
        .select_related("account", "file")
        .get(pk=read_from.pk)
    )
    if draft.job is not None:
        return draft.job  # the button was pressed twice
    if (draft.wishes, draft.mapping) != (read_from.wishes, read_from.mapping):
        return None
    accounts.check_writable(draft.account)
    file = _file(draft)
    table = tables.get_or_new(draft.account, draft.table_name)
    if table.pk is None:
        table = tables.create(draft.account, table.name, by=by)
    job = import_jobs.start(table, file, draft_file.rows, draft_file.mapping, _mode_of(draft), by=by)
    _forget_check(draft)
    # another user may look at an import that has not ended
    _imported(draft.account, draft.table_name).exclude(job__isnull=False, job__ended_at=None).delete()
    draft.job, draft.file = job, None
    draft.save(update_fields=("job", "file", "check_job"))
    return job


def _require_fit(found: DraftFile) -> None:
    """Raise MappingRefused unless the mapping fits the file and defines both keys."""
    proposals.require_keys(found.mapping, found.proposal.names)
    found.mapping.check(found.proposal.names)


def _file(draft: ImportDraft) -> JobFile:
    """Return the file of a draft; raises FileRefused if a job has taken it."""
    if draft.file is None:
        raise FileRefused(Reason.FILE_ROWS_EMPTY)
    return draft.file

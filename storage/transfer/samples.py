"""Beginnings of uploaded files, read outside transactions and cached per process."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Final

from django.utils import timezone

from storage.domain.refusals import Reason, Refusal
from storage.domain.values.kinds import AccountKind
from storage.editing.input_context import InputContext
from storage.models import JobFile
from storage.tabular.content import FileRefused
from storage.tabular.file import RowFile, Sample
from storage.tabular.layout import NO_WISHES, Wishes
from storage.tabular.proposals import Proposal
from storage.transfer import file_work, import_jobs

_KEPT: Final = 16  # samples, each of 8 MiB at most

_Key = tuple[int, datetime, Wishes]


@dataclass(frozen=True, slots=True)
class FileSample:
    """Beginning of a file: layout, first rows and proposed mapping."""

    rows: RowFile
    sample: Sample
    proposal: Proposal


_kept: Final[OrderedDict[_Key, FileSample | Refusal]] = OrderedDict()
_keeping: Final = Lock()


def take(file: JobFile, wishes: Wishes = NO_WISHES) -> FileSample:
    """Return the beginning of a complete file; raises FileRefused."""
    if not file.is_complete:
        raise FileRefused(Reason.FILE_ROWS_EMPTY)
    key = (file.pk, file.created_at, wishes)
    if (known := _find(key)) is not None:
        return known
    with file_work.reading(file.owner):
        if (known := _find(key)) is not None:  # another request was faster
            return known
        try:
            file_sample = _take(file, wishes)
        except FileRefused as refused:
            _keep(key, refused.refusal)
            raise
        _keep(key, file_sample)
        return file_sample


def _take(file: JobFile, wishes: Wishes) -> FileSample:
    kind = AccountKind.STORAGE if file.account is None else AccountKind(file.account.kind)
    read = RowFile(file_work.opening(file), wishes, check=file_work.check_process)
    sample = read.sample()
    proposal = sample.propose(InputContext(timezone.now(), kind))
    return FileSample(import_jobs.open_rows(file, read.layout), sample, proposal)


def _find(key: _Key) -> FileSample | None:
    with _keeping:
        known = _kept.get(key)
        if known is None:
            return None
        _kept.move_to_end(key)
    if isinstance(known, Refusal):
        raise FileRefused(known)
    return known


def _keep(key: _Key, found: FileSample | Refusal) -> None:
    with _keeping:
        _kept[key] = found
        if len(_kept) > _KEPT:
            _kept.popitem(last=False)

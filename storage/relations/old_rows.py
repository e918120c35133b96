"""Background rewrite of rows from versions before 1.1 to one text per row: see storage.sql.content.

Both forms read alike, but a page of old rows takes three to four times as long. The tables found by the
upgrade are walked once, in key order, for one second of every ten. Tables of other forms are left out; their
rows change when they are written.
"""

import threading
import time
from datetime import datetime
from typing import Final

from django.db import transaction

from storage.models import OldRows
from storage.sql import content
from storage.sql.attempts import attempting_each
from storage.sql.relations import relation_name, source_name

_SECONDS: Final = 1.0  # the length of each run
_done: Final = threading.Event()  # only an upgrade notes tables, before a server starts


def is_left() -> bool:
    """Return whether this process has to assume that old rows are left."""
    return not _done.is_set()


def rewrite(_: datetime) -> None:
    """Rewrite rows of some tables for about a second."""
    end = time.monotonic() + _SECONDS
    with attempting_each("Not all rows of older versions could be rewritten") as attempt:
        for table_id in OldRows.objects.order_by("table").values_list("table", flat=True):
            with attempt():
                while _rewrite_some(table_id) and time.monotonic() < end:
                    pass
            if time.monotonic() >= end:
                return
    if not OldRows.objects.exists():
        _done.set()


def _rewrite_some(table_id: int) -> bool:
    """Rewrite old rows among the next ones of a table; return whether more follow."""
    with transaction.atomic():
        # so that the table is neither deleted nor restored meanwhile
        pending = OldRows.objects.select_for_update(of=("self", "table")).select_related("table")
        work = pending.filter(table=table_id).first()
        if work is None:
            return False
        relation = source_name(relation_name(table_id), is_deleted=work.table.deleted_at is not None)
        last = (
            None
            if not work.table.form.capabilities.joins_partitions
            else content.rewrite(relation, work.last)
        )
        if last is None:
            work.delete()
        else:
            work.last = last
            work.save(update_fields=["last"])
        return last is not None

"""Downgrade support: changes of entities for older versions, which lack ``Activity.recorded``."""

from hashlib import blake2b

from django.db.models import Exists, OuterRef

from storage.history import changes
from storage.models import Activity, EntityChange


def store_changes() -> None:
    """Copy the changes of activities from the history to the table that older versions read.

    Changes that are stored already are skipped.
    """
    is_stored = Exists(EntityChange.objects.filter(activity=OuterRef("pk")))
    for done in Activity.objects.exclude(recorded=None).exclude(is_stored).order_by("pk").iterator():
        EntityChange.objects.bulk_create(
            EntityChange(
                activity=done,
                place=place,
                table_id=change.table_id,
                partition_key=change.key.partition_key,
                row_key=change.key.row_key,
                key_digest=blake2b("\0".join(change.key).encode(), digest_size=16).digest(),
                before=change.before and change.before.content.decode(),
                after=change.after and change.after.content.decode(),
                ticks_before=change.before and change.before.timestamp,
                ticks_after=change.after and change.after.timestamp,
            )
            for place, change in enumerate(changes.made_by(done))
        )

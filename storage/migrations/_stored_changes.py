"""On the way back, changes of entities are stored beside their activities, where older versions read them.

An operation of the last migration of this version that changes columns, as its last one, because its reverse runs the
code of this version: all columns have to be there.
"""

from hashlib import blake2b
from typing import Any, Final

from django.db import migrations

from storage.operations.changes import changes


def store_changes(apps: Any, schema_editor: Any) -> None:
    """Store the changes of entities beside their activities, as older versions read them, from the history."""
    from storage.models import Activity, EntityChange

    for done in Activity.objects.exclude(recorded=None).order_by("pk").iterator():
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


STORED_CHANGES: Final = migrations.RunPython(migrations.RunPython.noop, store_changes)

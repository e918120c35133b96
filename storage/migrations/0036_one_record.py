"""Activities lead to the history, which has the changes of entities; those of older versions keep what they stored."""

from hashlib import blake2b
from typing import Any

from django.db import migrations, models

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


class Migration(migrations.Migration):
    dependencies = [("storage", "0014_squashed_0035_branch_is_whole")]

    operations = [
        migrations.AddField("activity", "entities", models.PositiveIntegerField(default=0, db_default=0)),
        migrations.AddField("activity", "keys", models.JSONField(default=None, null=True)),
        migrations.AddField("activity", "recorded", models.JSONField(default=None, null=True)),
        migrations.RunPython(migrations.RunPython.noop, store_changes),
        migrations.RemoveIndex("activity", "activity_of_an_account"),
        migrations.AddIndex(
            "activity", models.Index(fields=["account", "-at", "-id"], name="activity_of_an_account")
        ),
    ]

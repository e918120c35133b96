"""The history of every account: segments and who makes changes. 0034_moments makes the functions that record them."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.utils import timezone

from storage.sql import history


def start(apps: Any, schema_editor: Any) -> None:
    segments, now = apps.get_model("storage", "HistorySegment"), timezone.now()
    for account_id in apps.get_model("storage", "Account").objects.values_list("pk", flat=True):
        for number in (1, 2):
            segments.objects.create(account_id=account_id, number=number, started_at=now)
            schema_editor.execute(history.create(account_id, number))
        schema_editor.execute(history.write_to(account_id, 1))


class Migration(migrations.Migration):
    dependencies = [("storage", "0020_long_keys")]

    operations = [
        migrations.AddField(
            "account", "history_days", models.PositiveSmallIntegerField(db_default=7, default=7)
        ),
        migrations.AddField("account", "history_bytes", models.BigIntegerField(default=None, null=True)),
        migrations.CreateModel(
            name="HistoryActor",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=8)),
                ("name", models.CharField(max_length=256)),
                ("address", models.CharField(max_length=64)),
                ("agent", models.CharField(max_length=256)),
                ("token", models.CharField(max_length=64)),
            ],
            options={
                "constraints": (
                    models.UniqueConstraint(
                        fields=("kind", "name", "address", "agent", "token"), name="one_actor"
                    ),
                ),
            },
        ),
        migrations.CreateModel(
            name="HistorySegment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(default=None, null=True)),
                ("packed", models.BooleanField(default=False)),
                ("dropped_at", models.DateTimeField(default=None, null=True)),
                ("last_xid", models.BigIntegerField(default=None, null=True)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="storage.account"
                    ),
                ),
            ],
            options={
                "constraints": (
                    models.UniqueConstraint(fields=("account", "number"), name="one_segment_of_a_number"),
                ),
            },
        ),
        migrations.RunSQL(history.SEQUENCE, "DROP SEQUENCE history_seq"),
        migrations.RunPython(start, migrations.RunPython.noop),
    ]

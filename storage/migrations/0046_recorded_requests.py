"""The request log."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("storage", "0045_import_drafts"),
    ]

    operations = [
        migrations.CreateModel(
            name="RecordedRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("request_id", models.UUIDField()),
                ("client_request_id", models.CharField(max_length=128)),
                ("outcome", models.CharField(max_length=7)),
                ("status", models.PositiveSmallIntegerField()),
                ("error", models.CharField(max_length=64)),
                ("operation", models.CharField(max_length=32)),
                ("method", models.CharField(max_length=16)),
                ("table_name", models.CharField(max_length=255)),
                ("path", models.TextField()),
                ("options", models.JSONField()),
                ("seconds", models.FloatField()),
                ("ingress", models.BigIntegerField()),
                ("egress", models.BigIntegerField()),
                ("authentication", models.CharField(max_length=16)),
                ("credential", models.CharField(max_length=256)),
                ("address", models.CharField(max_length=64)),
                ("agent", models.CharField(max_length=256)),
                ("version", models.CharField(max_length=16)),
                ("access_path", models.CharField(max_length=16)),
                ("candidates", models.JSONField(null=True)),
                ("fault", models.JSONField(null=True)),
                ("report", models.JSONField(null=True)),
                ("alike", models.PositiveIntegerField()),
                (
                    "account",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="storage.account",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["account", "id"], name="recorded_requests_of_account"),
                    models.Index(fields=["request_id"], name="recorded_requests_by_id"),
                    models.Index(
                        condition=models.Q(("client_request_id", ""), _negated=True),
                        fields=["account", "client_request_id"],
                        name="recorded_requests_by_client_id",
                    ),
                ],
            },
        ),
    ]

"""Imports that users prepare in the console."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0044_operations_as_jobs")]

    operations = [
        migrations.CreateModel(
            name="ImportDraft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("table_name", models.CharField(max_length=63)),
                ("owner", models.CharField(max_length=256)),
                ("file_name", models.CharField(max_length=255)),
                ("size", models.BigIntegerField()),
                ("wishes", models.TextField(blank=True, default="")),
                ("mapping", models.TextField(blank=True, default="")),
                ("mode", models.CharField(max_length=7)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="storage.account"
                    ),
                ),
                (
                    "check_job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="storage.job",
                    ),
                ),
                (
                    "file",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="draft",
                        to="storage.jobfile",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="storage.job",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["account", "table_name"], name="import_drafts_by_table"),
                ],
            },
        ),
    ]

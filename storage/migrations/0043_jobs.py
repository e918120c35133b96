"""Jobs and their files, in place of the queues for indexes and for distribution.

What periodic work has done keeps its table, whose model has another name.
"""

import uuid
from typing import Any

import django.db.models.deletion
from django.db import migrations, models

_SERVER = {
    "kind": "server",
    "name": "",
    "address": "",
    "agent": "",
    "request_id": "",
    "token": "",
    "label": "",
}


def start_what_was_asked_for(apps: Any, schema_editor: Any) -> None:
    """Make jobs of the indexes that wait, and of the requests for distribution that have not failed."""
    job = apps.get_model("storage", "Job")

    def start(table: Any, kind: str, actor: object, **arguments: object) -> None:
        job.objects.create(
            kind=kind,
            account_id=table.account_id,
            table=table,
            table_name=table.name,
            actor=actor,
            request_id=uuid.uuid4(),
            arguments=arguments,
            status="waiting",
        )

    indexes = apps.get_model("storage", "PropertyIndex").objects.filter(state__in=("building", "dropping"))
    for index in indexes.select_related("table"):
        start(index.table, "table.index", _SERVER, index=index.pk, property=index.name)
    requests = apps.get_model("storage", "DistributionRequest").objects.filter(error="")
    for request in requests.select_related("table"):
        start(request.table, "table.distribute", request.actor, distributed=request.distributed)


class Migration(migrations.Migration):
    dependencies = [("storage", "0042_change_sets")]

    operations = [
        migrations.AlterModelTable("job", "storage_job"),
        migrations.RenameModel("Job", "PeriodicRun"),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=32)),
                ("table_name", models.CharField(blank=True, default="", max_length=255)),
                ("actor", models.JSONField()),
                ("request_id", models.UUIDField()),
                ("arguments", models.JSONField(default=dict)),
                ("state", models.JSONField(default=None, null=True)),
                ("status", models.CharField(max_length=9)),
                ("wish", models.CharField(blank=True, default="", max_length=6)),
                ("steps", models.BigIntegerField(default=0)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("done", models.BigIntegerField(default=0)),
                ("total", models.BigIntegerField(default=None, null=True)),
                ("rate", models.FloatField(default=0)),
                ("counts", models.JSONField(default=dict)),
                ("failed", models.BigIntegerField(default=0)),
                ("failures", models.JSONField(default=list)),
                ("result", models.JSONField(default=dict)),
                ("error", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(default=None, null=True)),
                ("stepped_at", models.DateTimeField(default=None, null=True)),
                ("ended_at", models.DateTimeField(default=None, null=True)),
                ("seen_at", models.DateTimeField(default=None, null=True)),
                (
                    "account",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="storage.account",
                    ),
                ),
                (
                    "activity",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="storage.activity",
                    ),
                ),
                (
                    "table",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="storage.table",
                    ),
                ),
            ],
            options={
                "db_table": "storage_jobs",
            },
        ),
        migrations.CreateModel(
            name="JobFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("content_type", models.CharField(blank=True, default="", max_length=127)),
                ("owner", models.CharField(blank=True, default="", max_length=256)),
                ("size", models.BigIntegerField(default=0)),
                ("is_complete", models.BooleanField(default=False)),
                ("is_result", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                (
                    "account",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="storage.account",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="storage.job",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="JobFilePiece",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("start", models.BigIntegerField()),
                ("content", models.BinaryField()),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pieces",
                        to="storage.jobfile",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("ended_at", None)), fields=["stepped_at"], name="jobs_to_do"
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["ended_at"], name="jobs_by_end"),
        ),
        migrations.AddIndex(
            model_name="jobfile",
            index=models.Index(fields=["expires_at"], name="job_files_by_expiry"),
        ),
        migrations.AddConstraint(
            model_name="jobfilepiece",
            constraint=models.UniqueConstraint(fields=("file", "start"), name="one_piece_at_a_start"),
        ),
        # files are compressed already, or large: PostgreSQL need not try
        migrations.RunSQL(
            "ALTER TABLE storage_jobfilepiece ALTER COLUMN content SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
        migrations.RunPython(start_what_was_asked_for, migrations.RunPython.noop),
        migrations.DeleteModel("DistributionRequest"),
    ]

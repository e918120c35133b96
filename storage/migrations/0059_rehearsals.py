"""Rehearsals of failures, with what clients did; and the strictness of accounts."""

from django.db import migrations, models
from django.db.models import CASCADE

from storage.migrations._operations import FREE, Together, create_model


class Migration(migrations.Migration):
    dependencies = (("storage", "0058_webhook_format"),)
    operations = (
        Together(
            migrations.AddField(
                "account", "may_rehearse", models.BooleanField(default=False, db_default=False)
            ),
            migrations.AddField(
                "account",
                "strictness",
                models.CharField(max_length=16, default="friendly", db_default="friendly"),
            ),
            create_model(
                "RehearsalSet",
                account=models.ForeignKey(
                    "storage.account", on_delete=CASCADE, related_name="rehearsal_sets"
                ),
                name=models.CharField(max_length=64),
                description=models.TextField(max_length=2000, blank=True, default=""),
                rules=models.JSONField(),
                constraints=[
                    models.UniqueConstraint(fields=("account", "name"), name="one_set_of_a_name"),
                ],
            ),
            create_model(
                "Rehearsal",
                account=models.ForeignKey("storage.account", on_delete=CASCADE, related_name="rehearsals"),
                set_name=models.CharField(max_length=64),
                rules=models.JSONField(),
                table_name=models.CharField(max_length=255, blank=True, default=""),
                seed=models.BigIntegerField(),
                scale=models.FloatField(default=1.0),
                started_at=models.DateTimeField(),
                ends_at=models.DateTimeField(),
                stopped_at=models.DateTimeField(null=True, default=None),
                started_by=models.JSONField(),
                indexes=[models.Index(fields=["account", "started_at"], name="rehearsals_of_account")],
            ),
            create_model(
                "RehearsalClient",
                rehearsal=models.ForeignKey(
                    "storage.rehearsal", on_delete=CASCADE, related_name="clients", db_index=False
                ),
                agent=models.CharField(max_length=256),
                credential=models.CharField(max_length=256),
                requests=models.BigIntegerField(),
                matches=models.JSONField(),
                constraints=[
                    models.UniqueConstraint(
                        fields=("rehearsal", "agent", "credential"), name="one_client_of_a_rehearsal"
                    ),
                ],
            ),
            create_model(
                "RehearsalRate",
                rehearsal=models.ForeignKey(
                    "storage.rehearsal", on_delete=CASCADE, related_name="+", db_index=False
                ),
                rule=models.PositiveSmallIntegerField(),
                scope=models.CharField(max_length=64),
                level=models.FloatField(),
                exceeded=models.BooleanField(),
                at=models.DateTimeField(),
                constraints=[
                    models.UniqueConstraint(fields=("rehearsal", "rule", "scope"), name="one_rate"),
                ],
            ),
            create_model(
                "RehearsedRequest",
                rehearsal=models.ForeignKey(
                    "storage.rehearsal", on_delete=CASCADE, related_name="requests", db_index=False
                ),
                client=models.ForeignKey(
                    "storage.rehearsalclient", on_delete=CASCADE, related_name="+", **FREE
                ),
                number=models.BigIntegerField(),
                at=models.DateTimeField(),
                request_id=models.UUIDField(),
                exchange=models.JSONField(),
                indexes=[
                    models.Index(
                        fields=["rehearsal", "client"],
                        condition=models.Q(exchange__has_key="faulted"),
                        name="faulted_requests",
                    ),
                    models.Index(fields=["rehearsal", "id"], name="rehearsed_requests_in_order"),
                    models.Index(fields=["client"], name="rehearsed_requests_of_client"),
                ],
            ),
        ),
    )

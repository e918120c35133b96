"""Time series of requests and sizes."""

import django.db.models.deletion
from django.db import migrations, models

from storage.migrations._operations import FREE, create_model


class Migration(migrations.Migration):
    dependencies = [("storage", "0047_notices")]

    operations = [
        create_model(
            "RequestSeries",
            table_id=models.BigIntegerField(),
            minutes=models.PositiveSmallIntegerField(),
            period=models.DateTimeField(),
            process=models.CharField(max_length=16),
            counts=models.JSONField(),
            account=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, to="storage.account", **FREE
            ),
            indexes=[models.Index(fields=["minutes", "period"], name="series_by_period")],
            constraints=[
                models.UniqueConstraint(
                    fields=("account", "table_id", "minutes", "period", "process"), name="one_series_row"
                )
            ],
        ),
        create_model(
            "SizeSample",
            table_id=models.BigIntegerField(),
            at=models.DateTimeField(),
            entities=models.BigIntegerField(),
            size=models.BigIntegerField(),
            history=models.BigIntegerField(),
            account=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, to="storage.account", **FREE
            ),
            indexes=[models.Index(fields=["at"], name="samples_by_time")],
            constraints=[
                models.UniqueConstraint(fields=("account", "table_id", "at"), name="one_sample_at_a_time")
            ],
        ),
    ]

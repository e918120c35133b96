"""Tables that are to be distributed, or brought back, by a background job."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0030_throughput")]

    operations = [
        migrations.CreateModel(
            name="DistributionRequest",
            fields=[
                (
                    "table",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="storage.table",
                    ),
                ),
                ("distributed", models.BooleanField()),
                ("actor", models.JSONField()),
                ("asked_at", models.DateTimeField(auto_now_add=True)),
                ("error", models.TextField(blank=True, default="")),
            ],
        ),
    ]

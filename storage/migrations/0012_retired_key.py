"""Keys that were rotated and are still accepted.

The number 0011 was never used. The name stays: databases of 0.4 have recorded it, and would apply another one again.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("storage", "0010_management_api"),
    ]

    operations = [
        migrations.CreateModel(
            name="RetiredKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveSmallIntegerField()),
                ("sealed", models.BinaryField()),
                ("retired_at", models.DateTimeField()),
                ("accepted_until", models.DateTimeField()),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="retired_keys",
                        to="storage.account",
                    ),
                ),
            ],
        ),
    ]

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("storage", "0017_account_kind"),
    ]

    operations = [
        migrations.AddField(
            model_name="account",
            name="adaptive_indexes",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="PropertyScans",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("day", models.DateField()),
                ("scans", models.BigIntegerField()),
                ("seconds", models.FloatField()),
                (
                    "table",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="storage.table",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="scans_by_day")],
                "constraints": [
                    models.UniqueConstraint(fields=("table", "name", "day"), name="scans_of_a_day")
                ],
            },
        ),
    ]

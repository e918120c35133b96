"""The least version that may write, and a default for servers that do not know a column."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0032_long_operation")]

    operations = [
        migrations.CreateModel(
            name="DatabaseVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("writer", models.PositiveIntegerField()),
                ("release", models.CharField(max_length=32)),
            ],
        ),
        migrations.AlterField(
            "account", "adaptive_indexes", models.BooleanField(db_default=False, default=False)
        ),
    ]

"""Snapshots up to which a reader of the change feed who is far behind reads first."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0024_snapshots")]

    operations = [
        migrations.CreateModel(
            name="FeedMark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("snapshot", models.TextField()),
                ("next_xid", models.BigIntegerField(db_index=True)),
                ("changes", models.BigIntegerField()),
                ("at", models.BigIntegerField()),
            ],
        ),
    ]

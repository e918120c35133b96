"""Tables that are spread over the nodes of a Citus cluster, and accounts whose new tables are."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0028_consistency")]

    operations = [
        migrations.AddField("account", "distributes", models.BooleanField(db_default=False, default=False)),
        migrations.AddField("table", "distributed", models.BooleanField(db_default=False, default=False)),
        migrations.AddField("table", "distributed_rows", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("table", "distributed_bytes", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("table", "changes_since", models.DateTimeField(default=None, null=True)),
        migrations.AddIndex(
            "table",
            models.Index(
                fields=("account",), condition=models.Q(distributed=True), name="distributed_tables"
            ),
        ),
    ]

"""The relation of a new table is made when the table is first used; both deletion and creation are one statement."""

from django.db import migrations, models

from storage.sql import tables


class Migration(migrations.Migration):
    dependencies = (("storage", "0061_node_moments"),)
    operations = (
        migrations.AddField(
            "table", "relation_pending", models.BooleanField(default=False, db_default=False)
        ),
        migrations.AddIndex(
            "table",
            models.Index(fields=["id"], condition=models.Q(relation_pending=True), name="pending_relations"),
        ),
        migrations.RunSQL(tables.CREATE_FUNCTIONS, tables.DROP_FUNCTIONS),
    )

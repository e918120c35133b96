"""The metrics tables of Storage Analytics go, which the server alone has written.

An older server that still runs takes the constraint for another process that has made the table, and then finds none.
It also reads and writes what it knows of its progress, the table storage_analyticsprogress, which stays for it.
"""

from typing import Any

from django.db import migrations, models
from django.db.models import F, Q

from storage.sql import relations


def delete_metrics_tables(apps: Any, schema_editor: Any) -> None:
    """Delete them as people delete tables, so that the server drops their relations one by one."""
    tables = apps.get_model("storage", "Table").objects.filter(folded_name__startswith="$", deleted_at=None)
    found = tables.values_list("pk", flat=True)
    if found:
        # an older server that writes one has read this first, and would wait for the constraint with its locks
        schema_editor.execute("LOCK TABLE storage_table IN ACCESS EXCLUSIVE MODE")
    for table_id in found.all():
        schema_editor.execute(relations.soft_delete(table_id))
    apps.get_model("storage", "OldRows").objects.filter(table__in=tables).delete()
    tables.update(deleted_at=F("created_at"))  # there is no moment of the past that has them


class Migration(migrations.Migration):
    dependencies = [("storage", "0055_one_text")]

    operations = [
        migrations.RunPython(delete_metrics_tables, migrations.RunPython.noop),
        migrations.AddConstraint(
            "table",
            models.CheckConstraint(
                condition=Q(deleted_at__isnull=False) | ~Q(folded_name__startswith="$"),
                name="no_metrics_table",
            ),
        ),
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("AnalyticsProgress")]),
    ]

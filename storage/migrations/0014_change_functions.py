from typing import Any

from django.db import migrations

from storage.sql import batch, relations


def create_functions(apps: Any, schema_editor: Any) -> None:
    """Give every table the function for change sets, which now takes arrays instead of JSON."""
    tables = apps.get_model("storage", "Table").objects.filter(deleted_at=None)
    for table_id in tables.values_list("pk", flat=True).iterator():
        schema_editor.execute(batch.create_function(relations.relation_name(table_id)))


class Migration(migrations.Migration):
    dependencies = [("storage", "0013_rename_models")]

    operations = [migrations.RunPython(create_functions, migrations.RunPython.noop)]

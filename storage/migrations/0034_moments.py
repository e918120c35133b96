"""The floor of moments, and functions for change sets that keep to it."""

from typing import Any

from django.db import migrations

from storage.domain.values.kinds import AccountKind
from storage.sql import batch, history, moments, relations


def create_functions(apps: Any, schema_editor: Any) -> None:
    open_segments = apps.get_model("storage", "HistorySegment").objects.filter(ended_at=None)
    for account_id in open_segments.values_list("account_id", flat=True).distinct():
        schema_editor.execute(moments.create_in_order(history.writers_name(account_id)))
    tables = apps.get_model("storage", "Table").objects.filter(deleted_at=None, distributed=False)
    for table_id, account_id, kind in tables.values_list("pk", "account_id", "account__kind").iterator():
        name, writers = relations.relation_name(table_id), history.writers_name(account_id)
        schema_editor.execute(batch.create_function(name, writers, AccountKind(kind)))


class Migration(migrations.Migration):
    dependencies = [("storage", "0033_database_version")]

    operations = [
        migrations.RunSQL(moments.CREATE, moments.DROP),
        migrations.RunPython(create_functions, migrations.RunPython.noop),
    ]

"""The clock is noted, so that what is over stays as it was when the clock is set back."""

from typing import Any

from django.db import migrations

from storage.domain.values.kinds import AccountKind
from storage.sql import moments, relations


def replace_functions(apps: Any, schema_editor: Any) -> None:
    tables = apps.get_model("storage", "Table").objects.filter(deleted_at=None, distributed=False)
    for table_id, account_id, kind in tables.values_list("pk", "account_id", "account__kind").iterator():
        schema_editor.execute(relations.create_function(table_id, account_id, AccountKind(kind)))


class Migration(migrations.Migration):
    dependencies = [("storage", "0052_copied_tables")]

    # the functions of an older version are called by the names of these, which do what they did
    operations = [
        migrations.RunSQL(moments.CREATE_NOTES, migrations.RunSQL.noop),
        migrations.RunSQL(moments.NOTE_FLOOR, migrations.RunSQL.noop),
        migrations.RunSQL(moments.CREATE_FUNCTIONS, migrations.RunSQL.noop),
        migrations.RunPython(replace_functions, migrations.RunPython.noop),
    ]

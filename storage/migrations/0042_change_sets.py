"""Change sets whose changes are all of one kind are made by one statement: tables get the function of this version."""

from typing import Any

from django.db import migrations

from storage.domain.values.kinds import AccountKind
from storage.sql import relations


def replace_functions(apps: Any, schema_editor: Any) -> None:
    tables = apps.get_model("storage", "Table").objects.filter(deleted_at=None, distributed=False)
    for table_id, account_id, kind in tables.values_list("pk", "account_id", "account__kind").iterator():
        schema_editor.execute(relations.create_function(table_id, account_id, AccountKind(kind)))


class Migration(migrations.Migration):
    dependencies = [("storage", "0041_adaptive_by_default")]

    operations = [migrations.RunPython(replace_functions, migrations.RunPython.noop)]

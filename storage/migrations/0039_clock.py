"""What a clock that jumps does to the floor of Timestamps."""

from typing import Any

from django.db import migrations

from storage.sql import moments

_IN_ORDER = "_in_order"


def replace_functions(apps: Any, schema_editor: Any) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT proname FROM pg_proc WHERE proname ~ '^history_[0-9]+_in_order$'")
        for (name,) in cursor.fetchall():
            cursor.execute(moments.create_in_order(name.removesuffix(_IN_ORDER)))


class Migration(migrations.Migration):
    dependencies = [("storage", "0038_quotas")]

    operations = [
        migrations.RunSQL(moments.CREATE_NOTES, migrations.RunSQL.noop),
        migrations.RunSQL(moments.CREATE_FUNCTIONS, migrations.RunSQL.noop),
        migrations.RunPython(replace_functions, migrations.RunPython.noop),
    ]

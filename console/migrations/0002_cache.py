from typing import Any

from django.core.management import call_command
from django.db import migrations


def create(apps: Any, schema_editor: Any) -> None:
    call_command("createcachetable", database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    """The table of the cache, in which attempts to sign in are counted."""

    dependencies = [("console", "0001_initial")]

    operations = [migrations.RunPython(create, migrations.RunPython.noop)]

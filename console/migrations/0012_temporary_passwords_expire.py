"""Until when a generated password works; those that there are work for a week from now."""

from datetime import timedelta
from typing import Any

from django.db import migrations, models
from django.db.models.functions import Now


def limit_present(apps: Any, schema_editor: Any) -> None:
    users = apps.get_model("console", "User").objects.filter(has_temporary_password=True)
    users.update(temporary_password_until=Now() + timedelta(days=7))


class Migration(migrations.Migration):
    dependencies = [("console", "0011_temporary_passwords")]

    operations = [
        migrations.AddField(
            "user", "temporary_password_until", models.DateTimeField(null=True, default=None)
        ),
        migrations.RunPython(limit_present, migrations.RunPython.noop),
        migrations.RemoveField("user", "has_temporary_password"),
    ]

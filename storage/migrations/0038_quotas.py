"""Quotas of an account of its own, below those of the server."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0037_given_roles")]

    operations = [
        migrations.AddField("account", name, models.PositiveIntegerField(default=None, null=True))
        for name in ("snapshot_limit", "saved_query_limit", "sas_limit")
    ]

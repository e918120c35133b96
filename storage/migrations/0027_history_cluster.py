"""Segments of a history know in which cluster they were written: a restored dump has transactions of another one."""

from django.db import migrations, models

_FILL = "UPDATE storage_historysegment SET cluster = (SELECT system_identifier FROM pg_control_system())"


class Migration(migrations.Migration):
    dependencies = [("storage", "0023_feed_marks")]

    operations = [
        migrations.AddField("historysegment", "cluster", models.BigIntegerField(default=None, null=True)),
        migrations.RunSQL(_FILL, migrations.RunSQL.noop),
    ]

"""Moments of distributed tables, by a floor of Timestamps on each node."""

from django.db import migrations, models

from storage.sql import moments


class Migration(migrations.Migration):
    dependencies = (("storage", "0060_query_shapes"),)
    operations = (
        migrations.AddField("table", "distributed_since", models.DateTimeField(default=None, null=True)),
        migrations.RunSQL(moments.CREATE_NODE_FUNCTIONS, migrations.RunSQL.noop),
    )

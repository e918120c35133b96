"""The throughput of a table in an account of the kind cosmos."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0018_adaptive_indexes")]

    operations = [
        migrations.AddField("table", "throughput", models.PositiveIntegerField(default=0, db_default=0))
    ]

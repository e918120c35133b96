"""The level of consistency of an account, and by how many seconds its reads may be behind at bounded staleness."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0027_history_cluster")]

    operations = [
        migrations.AddField(
            "account", "consistency", models.CharField(max_length=16, default="Strong", db_default="Strong")
        ),
        migrations.AddField("account", "max_staleness", models.PositiveIntegerField(default=5, db_default=5)),
    ]

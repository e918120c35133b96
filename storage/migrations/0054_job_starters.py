"""Which user has started a job, and with which token: it ends when they lose what it needs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0053_noted_clock")]

    operations = [
        migrations.AddField("job", "starter", models.BigIntegerField(null=True, default=None)),
        migrations.AddField("job", "starter_token", models.BigIntegerField(null=True, default=None)),
    ]

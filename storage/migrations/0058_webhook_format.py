"""Webhooks have a format; those of older versions get the signed JSON that they have always got."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("storage", "0057_requests_counted_once"),)
    operations = (
        migrations.AddField(
            "webhook", "format", models.CharField(max_length=16, default="json", db_default="json")
        ),
    )

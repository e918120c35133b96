"""Imports are prepared for tables of all names: in accounts of the kind cosmos they have up to 254 characters."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("storage", "0063_quicker_tables"),)
    operations = (migrations.AlterField("importdraft", "table_name", models.CharField(max_length=255)),)

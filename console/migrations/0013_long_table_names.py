"""Queries are saved for tables of all names: in accounts of the kind cosmos they have up to 254 characters."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("console", "0012_temporary_passwords_expire"),)
    operations = (migrations.AlterField("savedquery", "table_name", models.CharField(max_length=255)),)

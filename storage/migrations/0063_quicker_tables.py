"""Deletions of tables that were never used take a statement less, and creations seldom set their time twice."""

from django.db import migrations

from storage.sql import tables


class Migration(migrations.Migration):
    dependencies = (("storage", "0062_pending_relations"),)
    operations = (migrations.RunSQL(tables.CREATE_FUNCTIONS, migrations.RunSQL.noop),)

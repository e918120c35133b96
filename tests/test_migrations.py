"""Columns that a migration adds suit the version before, whose servers write rows without them."""

from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField
from django.db.models import NOT_PROVIDED, GeneratedField


def test_added_columns_have_a_value_without_being_written():
    migrations = MigrationLoader(None).disk_migrations.items()
    added = [
        (f"{app}/migrations/{name}.py", it.name, it.field)
        for (app, name), migration in migrations
        if app in ("storage", "console") and not migration.replaces  # these are of versions before 1.0
        for it in migration.operations
        if isinstance(it, AddField)
    ]
    assert len(added) > 20
    unwritten = [
        f"{path}: {name}"
        for path, name, field in added
        if not (field.null or field.db_default is not NOT_PROVIDED or isinstance(field, GeneratedField))
    ]
    assert not unwritten, f"give these columns db_default or null, also in models.py: {unwritten}"

"""The keys that all entities were under before, also those without comments."""

from django.db import migrations, models

from storage.migrations._stored_changes import STORED_CHANGES


class Migration(migrations.Migration):
    dependencies = [("storage", "0052_copied_tables")]

    operations = [
        migrations.RenameModel("CommentMove", "EntityMove"),
        migrations.AddField("EntityMove", "has_comments", models.BooleanField(default=True)),
        STORED_CHANGES,
    ]

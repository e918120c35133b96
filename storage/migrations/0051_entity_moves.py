"""The keys that entities, and their comments, were under before."""

from django.db import migrations, models
from django.db.models import CASCADE

from storage.migrations._operations import create_model


class Migration(migrations.Migration):
    dependencies = [("storage", "0050_links_and_presence")]

    operations = [
        create_model(
            "EntityMove",
            table=models.ForeignKey(
                "storage.table", on_delete=CASCADE, db_constraint=False, related_name="+"
            ),
            partition_key=models.TextField(blank=True),
            row_key=models.TextField(blank=True),
            new_partition_key=models.TextField(blank=True),
            new_row_key=models.TextField(blank=True),
            moved_at=models.DateTimeField(db_index=True),
            has_comments=models.BooleanField(default=True),
        ),
    ]

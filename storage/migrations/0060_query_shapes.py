"""Counts of queries by the shape of their filters."""

from django.db import migrations, models
from django.db.models import CASCADE

from storage.migrations._operations import FREE, create_model


class Migration(migrations.Migration):
    dependencies = (("storage", "0059_rehearsals"),)
    operations = (
        create_model(
            "QueryShape",
            account=models.ForeignKey("storage.account", on_delete=CASCADE, **FREE),
            table_id=models.BigIntegerField(),
            day=models.DateField(),
            digest=models.CharField(max_length=32),
            shape=models.TextField(),
            path=models.CharField(max_length=16),
            client=models.CharField(max_length=128),
            requests=models.BigIntegerField(),
            entities=models.BigIntegerField(),
            constraints=[
                models.UniqueConstraint(
                    fields=("account", "table_id", "day", "digest"), name="one_count_of_a_shape"
                ),
            ],
            indexes=[models.Index(fields=["day"], name="query_shapes_by_day")],
        ),
    )

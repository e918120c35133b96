"""How far tables are copied between accounts and other services."""

from django.db import migrations, models
from django.db.models import CASCADE

from storage.migrations._operations import create_model


class Migration(migrations.Migration):
    dependencies = [("storage", "0051_entity_moves")]

    operations = [
        create_model(
            "CopiedTable",
            account=models.ForeignKey("storage.account", on_delete=CASCADE, db_index=False, related_name="+"),
            is_outgoing=models.BooleanField(),
            service=models.TextField(),
            source=models.CharField(max_length=255),
            target=models.CharField(max_length=255),
            job=models.BigIntegerField(),
            progress=models.JSONField(),
            updated_at=models.DateTimeField(auto_now=True),
            constraints=[
                models.UniqueConstraint(
                    fields=("account", "is_outgoing", "service", "source", "target"),
                    name="one_copy_of_a_table",
                )
            ],
        ),
    ]

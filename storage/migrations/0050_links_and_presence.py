"""Short links; and who has a table open, which does not have to survive a crash."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import CASCADE

from storage.migrations._operations import create_model


class Migration(migrations.Migration):
    dependencies = [
        ("storage", "0049_comments"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        create_model(
            "ShortLink",
            key=models.CharField(max_length=16, primary_key=True, serialize=False),
            account=models.ForeignKey("storage.account", on_delete=CASCADE, db_index=False, related_name="+"),
            address=models.TextField(),
            created_at=models.DateTimeField(),
            used_at=models.DateTimeField(),
            indexes=[
                models.Index(fields=["used_at"], name="links_by_use"),
                models.Index(fields=["account", "-used_at"], name="links_of_an_account"),
            ],
        ),
        create_model(
            "Presence",
            tab=models.UUIDField(),
            user=models.ForeignKey(
                settings.AUTH_USER_MODEL, on_delete=CASCADE, db_constraint=False, related_name="+"
            ),
            table=models.ForeignKey(
                "storage.table", on_delete=CASCADE, db_constraint=False, related_name="+"
            ),
            process=models.CharField(max_length=16),
            entity=models.TextField(blank=True, default=""),
            seen_at=models.DateTimeField(),
            constraints=[models.UniqueConstraint(fields=("tab", "user"), name="one_presence_of_a_tab")],
        ),
        migrations.RunSQL(
            "ALTER TABLE storage_presence SET UNLOGGED", "ALTER TABLE storage_presence SET LOGGED"
        ),
    ]

"""Activities lead to the history, which has the changes of entities; those of older versions keep what they stored."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0014_squashed_0035_branch_is_whole")]

    operations = [
        migrations.AddField("activity", "entities", models.PositiveIntegerField(default=0, db_default=0)),
        migrations.AddField("activity", "keys", models.JSONField(default=None, null=True)),
        migrations.AddField("activity", "recorded", models.JSONField(default=None, null=True)),
        migrations.RemoveIndex("activity", "activity_of_an_account"),
        migrations.AddIndex(
            "activity", models.Index(fields=["account", "-at", "-id"], name="activity_of_an_account")
        ),
    ]

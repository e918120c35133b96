"""The new name of saved addresses, the order and widths of columns, the time zone of the browser: all since 0.4."""

from django.db import migrations, models

from storage.migrations._operations import create_model, replacing


class Migration(migrations.Migration):
    replaces = replacing(
        "console", "0007_saved_urls", "0008_property_order", "0009_automatic_time_zone", "0010_column_widths"
    )

    dependencies = [
        ("console", "0006_saved_queries"),
        ("storage", "0008_squashed_0012_retired_key"),
    ]

    operations = [
        migrations.RenameModel("StoredState", "SavedUrl"),
        migrations.RenameIndex("savedurl", "saved_urls_by_use", "stored_states_by_use"),
        create_model(
            "PropertyOrder",
            table=models.OneToOneField(
                "storage.table", models.CASCADE, primary_key=True, related_name="+", serialize=False
            ),
            names=models.JSONField(default=list),
            widths=models.JSONField(default=dict),
        ),
        migrations.AlterField("user", "time_zone", models.CharField(blank=True, default="", max_length=64)),
    ]

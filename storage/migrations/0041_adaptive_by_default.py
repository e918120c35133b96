"""Adaptive indexes are on unless an account has turned them off, and know why they are there."""

from django.db import migrations, models

# an account that turned them off, or undid that they were on, has an entry in the activity log; others never chose
_TURN_ON = """
UPDATE storage_account SET adaptive_indexes = true
WHERE NOT adaptive_indexes AND NOT EXISTS (
    SELECT FROM storage_activity
    WHERE account_id = storage_account.id AND verb IN ('account.change', 'undo') AND "after" ? 'adaptive_indexes'
)
"""
_DECLINE = """
UPDATE storage_table SET declined_indexes = dropped.names
FROM (
    SELECT table_id, jsonb_agg(DISTINCT detail->'property') AS names FROM storage_activity
    WHERE (verb = 'index.drop' OR verb = 'undo' AND detail->>'verb' = 'index.drop') AND actor_kind <> 'server'
    GROUP BY table_id
) AS dropped
WHERE storage_table.id = dropped.table_id
"""


class Migration(migrations.Migration):
    dependencies = [("storage", "0040_stored_changes")]

    operations = [
        migrations.AlterField(
            "account", "adaptive_indexes", models.BooleanField(db_default=True, default=True)
        ),
        migrations.AddField("table", "declined_indexes", models.JSONField(default=None, null=True)),
        migrations.AddField("propertyindex", "reason", models.JSONField(default=None, null=True)),
        migrations.AddField(
            "propertyscans", "filter", models.TextField(blank=True, db_default="", default="")
        ),
        migrations.RunSQL(_TURN_ON, migrations.RunSQL.noop),
        migrations.RunSQL(_DECLINE, migrations.RunSQL.noop),
    ]

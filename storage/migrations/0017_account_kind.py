"""Kinds of accounts: longer table names, and larger entities in Cosmos accounts."""

from django.db import migrations, models

# as storage.domain.entities.entity measures entities of Cosmos accounts; they have no limit of properties
EXCESS = r"""
CREATE FUNCTION cosmos_entity_excess(pk text, rk text, anns text, vals text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'EntityTooLarge'
    WHERE octet_length(pk) + octet_length(rk)
        + octet_length(regexp_replace(vals, '\\u[0-9a-f]{4}', 'xxx', 'g')) > 2097152
$$
"""


class Migration(migrations.Migration):
    dependencies = [("storage", "0016_property_index")]

    operations = [
        migrations.AddField(
            "account", "kind", models.CharField(db_default="storage", default="storage", max_length=7)
        ),
        migrations.AlterField("table", "name", models.CharField(max_length=255)),
        migrations.AlterField("table", "folded_name", models.CharField(max_length=255)),
        migrations.AlterField(
            "activity", "table_name", models.CharField(blank=True, default="", max_length=255)
        ),
        migrations.AlterField(
            "registeredsas", "table_name", models.CharField(blank=True, default="", max_length=255)
        ),
        migrations.RunSQL(EXCESS, "DROP FUNCTION cosmos_entity_excess"),
    ]

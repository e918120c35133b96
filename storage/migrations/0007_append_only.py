"""Keep what the record of activity says from being changed, even by mistake; it is only ever tidied."""

from django.db import migrations

FUNCTION = """
CREATE FUNCTION activity_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('tablero.tidying', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The record of activity is only added to.' USING ERRCODE = 'insufficient_privilege';
END
$$
"""

TRIGGER = """
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION activity_append_only()
"""


class Migration(migrations.Migration):
    dependencies = [("storage", "0006_activity")]

    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION activity_append_only"),
        *(
            migrations.RunSQL(TRIGGER.format(table=table), f"DROP TRIGGER append_only ON {table}")
            for table in ("storage_activity", "storage_entitychange")
        ),
    ]

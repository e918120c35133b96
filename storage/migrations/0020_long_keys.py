"""Entities with long keys: the functions that make room for them."""

from django.db import migrations

# a length before the first key, so that no two pairs of keys are the same text
KEY_HASH = """
CREATE FUNCTION entity_key_hash(pk text, rk text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256(convert_to(length(pk) || ' ' || pk || rk, 'UTF8'))
$$
"""

# Only the first long key of a table takes the lock, so that two first ones do not make the relation twice. A row from
# before the table had such a relation, whose keys fit because they could be compressed, moves with its next write.
MAKE_ROOM = """
CREATE FUNCTION entity_make_room(relation text, p text, r text, place integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass(relation || '_long') IS NULL THEN
        EXECUTE format('LOCK TABLE %I IN SHARE UPDATE EXCLUSIVE MODE', relation);
        IF to_regclass(relation || '_long') IS NULL THEN
            EXECUTE format('
                CREATE TABLE %2$I () INHERITS (%1$I) WITH (
                    toast_tuple_target = 4080,
                    autovacuum_vacuum_scale_factor = 0.05,
                    autovacuum_vacuum_insert_scale_factor = 0.05,
                    autovacuum_analyze_scale_factor = 0.02
                );
                CREATE UNIQUE INDEX ON %2$I (entity_key_hash(pk, rk));
                CREATE INDEX ON %2$I USING hash (pk);
                CREATE INDEX ON %2$I USING hash (rk);
                CREATE INDEX ON %2$I USING gin (props jsonb_path_ops)',
                relation, relation || '_long');
        END IF;
    END IF;
    EXECUTE format('
        WITH old AS (DELETE FROM ONLY %I WHERE pk = $1 AND rk = $2 RETURNING *)
        INSERT INTO %I SELECT * FROM old',
        relation, relation || '_long') USING p, r;
EXCEPTION WHEN feature_not_supported OR wrong_object_type THEN
    -- a distributed relation has no children
    RAISE EXCEPTION USING ERRCODE = 'TB001', MESSAGE = place || ' KeyValueTooLarge';
END
$$
"""


class Migration(migrations.Migration):
    dependencies = [("storage", "0019_throughput")]

    operations = [
        migrations.RunSQL(KEY_HASH, "DROP FUNCTION entity_key_hash"),
        migrations.RunSQL(MAKE_ROOM, "DROP FUNCTION entity_make_room"),
    ]

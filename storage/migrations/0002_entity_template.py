"""The shape of every entity relation, and the SQL functions its statements call.

Immutable functions only, since a distributed PostgreSQL refuses others in ON CONFLICT DO UPDATE.
"""

from django.db import migrations

TEMPLATE = """
CREATE TABLE entity_template (
    pk text COLLATE "C" NOT NULL,    -- PartitionKey
    rk text COLLATE "C" NOT NULL,    -- RowKey
    ts bigint NOT NULL,              -- Timestamp and ETag: ticks of 100 ns since 1970
    props jsonb NOT NULL,            -- typed projection, for filters and $select
    anns text NOT NULL,              -- lines of '\\n,"A@odata.type":"Edm.Int64"', ready to send
    vals text NOT NULL,              -- lines of '\\n,"A":"5"', exact, ASCII, ready to send
    PRIMARY KEY (pk, rk)
)
"""

# the lines of a text, of values or of annotations, but for those of the properties that are gone
WITHOUT = r"""
CREATE FUNCTION entity_without(lines text, gone text[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (
        SELECT coalesce(string_agg(E'\n' || line, ''), '')
        FROM string_to_table(substr(lines, 2), E'\n') AS line
        -- between the first two quotation marks: a name, or a name with what it is annotated with
        WHERE split_part(split_part(line, '"', 2), '@', 1) <> ALL (gone)
    );
END
$$
"""

# the code of the limit that an entity exceeds, null when it exceeds none: storage.domain.entities.entity in SQL,
# for merges, whose result only the database sees
EXCESS = r"""
CREATE FUNCTION entity_excess(pk text, rk text, anns text, vals text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    size bigint;
BEGIN
    -- every property is one line
    IF octet_length(vals) - octet_length(replace(vals, E'\n', '')) > 252 THEN
        RETURN 'TooManyProperties';
    END IF;
    IF octet_length(vals) <= 500000 THEN
        RETURN NULL;
    END IF;
    WITH line AS (
        SELECT split_part(l, '"', 2) AS name, substr(l, strpos(l, ':') + 1) AS value
        FROM string_to_table(substr(vals, 2), E'\n') AS l
    ), annotation AS (
        SELECT split_part(split_part(l, '"', 2), '@', 1) AS name, split_part(l, '"', 4) AS type
        FROM string_to_table(substr(anns, 2), E'\n') AS l
    ), measured AS (
        -- an escape of either form stands for one UTF-16 unit
        SELECT length(regexp_replace(name, '\\u[0-9a-f]{4}', 'x', 'g')) AS name_length,
               CASE
                   WHEN type = 'Edm.Guid' THEN 16
                   WHEN type = 'Edm.Binary' THEN octet_length(decode(trim(value, '"'), 'base64')) + 4
                   WHEN type IS NOT NULL THEN 8
                   WHEN value LIKE '"%' THEN
                       2 * (length(regexp_replace(value, '\\(u[0-9a-f]{4}|.)', 'x', 'g')) - 2) + 4
                   WHEN value IN ('true', 'false') THEN 1
                   WHEN value ~ '[.E]' THEN 8
                   ELSE 4
               END AS value_size
        FROM line LEFT JOIN annotation USING (name)
    )
    SELECT 4 + 2 * (entity_key_length(pk) + entity_key_length(rk)) + sum(8 + 2 * name_length + value_size)
    INTO size FROM measured;
    IF size > 1048576 THEN
        RETURN 'EntityTooLarge';
    END IF;
    RETURN NULL;
END
$$
"""

KEY_LENGTH = r"""
CREATE FUNCTION entity_key_length(key text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- UTF-16 units: an astral character counts twice
    SELECT length(key) + length(regexp_replace(key, '[\u0001-\uffff]', '', 'g'))
$$
"""


class Migration(migrations.Migration):
    dependencies = [("storage", "0001_initial")]

    operations = [
        migrations.RunSQL(TEMPLATE, "DROP TABLE entity_template"),
        migrations.RunSQL(KEY_LENGTH, "DROP FUNCTION entity_key_length"),
        migrations.RunSQL(WITHOUT, "DROP FUNCTION entity_without"),
        migrations.RunSQL(EXCESS, "DROP FUNCTION entity_excess"),
    ]

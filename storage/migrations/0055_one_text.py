"""A row has one text: each annotation stands before its value, as the service writes them.

Rows and histories of older versions keep their annotations apart; ``entity_content`` reads them. Older servers that
still run write through the functions of tables as before, and what they write by themselves is read like an old row.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from storage.domain.values.kinds import AccountKind
from storage.sql import relations

FUNCTIONS = r"""
-- The text of a row whose annotations are in lines apart; some of its lines may have theirs already.
CREATE OR REPLACE FUNCTION entity_content(anns text, vals text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF anns = '' THEN
        RETURN vals;
    END IF;
    RETURN (
        SELECT coalesce(string_agg(
            CASE WHEN a.line IS NULL THEN E'\n' || v.line ELSE E'\n\t' || a.line || E'\t' || v.line END,
            '' ORDER BY v.place), '')
        FROM string_to_table(right(vals, -1), E'\n') WITH ORDINALITY AS v (line, place)
        LEFT JOIN string_to_table(right(anns, -1), E'\n') AS a (line)
            ON split_part(split_part(a.line, '"', 2), '@', 1) = split_part(v.line, '"', 2)
    );
END
$$;

-- The text of a row with the lines of a change, sorted by names; ``gone`` are the names that the change sets.
CREATE OR REPLACE FUNCTION entity_merged(content text, change text, gone text[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (
        SELECT coalesce(string_agg(E'\n' || line, '' ORDER BY replace(name, '\u', '~') COLLATE "C"), '')
        FROM string_to_table(right(change || content, -1), E'\n') WITH ORDINALITY AS member (line, place),
            split_part(split_part(line, '"', 2), '@', 1) AS name
        WHERE place <= cardinality(gone) OR name <> ALL (gone)
    );
END
$$;

-- The same in a Cosmos account, in which a property stays where it is, and new ones follow.
CREATE OR REPLACE FUNCTION entity_merged_in_place(content text, change text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (
        SELECT coalesce(string_agg(E'\n' || line, '' ORDER BY first), '')
        FROM (
            SELECT DISTINCT ON (name) line, min(place) OVER (PARTITION BY name) AS first
            FROM (
                SELECT line, place, split_part(split_part(line, '"', 2), '@', 1) AS name
                FROM string_to_table(right(content || change, -1), E'\n') WITH ORDINALITY AS member (line, place)
            ) AS named
            ORDER BY name, place DESC
        ) AS latest
    );
END
$$;

CREATE OR REPLACE FUNCTION entity_excess(pk text, rk text, content text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    size bigint;
BEGIN
    -- every property is one line
    IF octet_length(content) - octet_length(replace(content, E'\n', '')) > 252 THEN
        RETURN 'TooManyProperties';
    END IF;
    IF octet_length(content) <= 500000 THEN
        RETURN NULL;
    END IF;
    WITH member AS (
        SELECT CASE WHEN starts_with(line, E'\t') THEN split_part(line, '"', 4) END AS type,
            CASE WHEN starts_with(line, E'\t') THEN split_part(line, E'\t', 3) ELSE line END AS line
        FROM string_to_table(right(content, -1), E'\n') AS line
    ), named AS (
        SELECT type, split_part(line, '"', 2) AS name, substr(line, strpos(line, ':') + 1) AS value FROM member
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
        FROM named
    )
    SELECT 4 + 2 * (entity_key_length(pk) + entity_key_length(rk)) + sum(8 + 2 * name_length + value_size)
    INTO size FROM measured;
    IF size > 1048576 THEN
        RETURN 'EntityTooLarge';
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION cosmos_entity_excess(pk text, rk text, content text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'EntityTooLarge'
    WHERE octet_length(pk) + octet_length(rk) + octet_length(
        regexp_replace(regexp_replace(content, '\t[^\t]*\t', '', 'g'), '\\u[0-9a-f]{4}', 'xxx', 'g')) > 2097152
$$;

CREATE OR REPLACE FUNCTION entity_projection(content text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    line text;
    name text;
    value text;
    type text;
    members text := '';
BEGIN
    FOREACH line IN ARRAY string_to_array(right(content, -1), E'\n') LOOP
        type := '';
        IF starts_with(line, E'\t') THEN
            type := substr(split_part(line, '"', 4), 5);
            line := split_part(line, E'\t', 3);
        END IF;
        name := split_part(line, '"', 2);
        value := substr(line, length(name) + 5);
        members := members || ',"' || name || '":' || CASE
            WHEN type = '' THEN CASE
                WHEN starts_with(value, '"') THEN
                    CASE WHEN strpos(value, '\u') > 0 AND value ~ '\\u(0000|0001|e000|d[89a-f])'
                        THEN '"s' || substr(entity_escaped(value), 2) ELSE '"s' || substr(value, 2) END
                WHEN value = '-0.0' THEN '0.000'
                WHEN strpos(value, 'E') > 0 THEN
                    value::numeric || CASE WHEN scale(value::numeric) = 0 THEN '.0' ELSE '' END
                ELSE value END
            WHEN type = 'DateTime' THEN
                '"t' || rpad(trim('"Z' FROM value) || CASE WHEN strpos(value, '.') = 0 THEN '.' ELSE '' END, 27, '0')
                || '"'
            WHEN type = 'Int64' THEN trim('"' FROM value) || '.00'
            WHEN type = 'Guid' THEN '"g' || substr(value, 2)
            WHEN type = 'Binary' THEN
                '"b' || encode(decode(trim('"' FROM value), 'base64'), 'hex') || '"'
            ELSE CASE value WHEN '"Infinity"' THEN '1e400' WHEN '"-Infinity"' THEN '-1e400' ELSE '"n"' END
            END;
    END LOOP;
    RETURN ('{' || substr(members, 2) || '}')::jsonb;
END
$$;

-- The text with another line in place of that of a property, if it has one; ``line`` begins with a line feed.
CREATE OR REPLACE FUNCTION entity_with_line(content text, member text, line text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    first integer := strpos(content, E'\n,' || member || ':');
    length integer;
BEGIN
    IF first = 0 THEN
        first := strpos(content, E'\n\t,' || left(member, -1) || '@odata.type":');
    END IF;
    IF first = 0 THEN
        RETURN content;
    END IF;
    length := strpos(substr(content, first + 1), E'\n');
    RETURN left(content, first - 1) || line || CASE WHEN length = 0 THEN '' ELSE substr(content, first + length) END;
END
$$;

-- A row masked by the rules for its properties: their names in the projection and in the text, masks, constants.
CREATE OR REPLACE FUNCTION entity_masked(
    names text[], members text[], masks text[], constants text[], secret bytea, INOUT props jsonb, INOUT content text
)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    original text;
    kind text;
    hash bytea;
    digits text;
    number text;
    masked text;
    projected jsonb;
    written text;
    type text;
BEGIN
    FOR i IN 1 .. cardinality(names) LOOP
        original := props ->> names[i];
        CONTINUE WHEN original IS NULL;
        -- the type of a number is in its scale: see storage.domain.values.encoding.project
        kind := CASE jsonb_typeof(props -> names[i])
            WHEN 'string' THEN left(original, 1)
            WHEN 'boolean' THEN '?'
            WHEN 'number' THEN CASE
                WHEN original LIKE '%.00' AND original <> '0.000' THEN '6'
                WHEN strpos(original, '.') = 0 AND length(original) < 12 THEN '3'
                ELSE 'n'
            END
        END;
        IF masks[i] IN ('hash', 'name', 'email', 'phone') THEN
            hash := entity_keyed_hash(secret, CASE kind WHEN 's' THEN substr(original, 2) ELSE original END);
            digits := encode(hash, 'hex');
        END IF;
        masked := NULL;
        projected := NULL;
        CASE masks[i]
        WHEN 'remove' THEN
            NULL;
        WHEN 'constant' THEN
            masked := constants[i];
        WHEN 'name' THEN
            masked := entity_masked_name(hash);
            IF kind = 's' AND masked = substr(original, 2) THEN
                masked := entity_masked_name(substr(hash, 3));
            END IF;
        WHEN 'email' THEN
            masked := 'u' || left(digits, 12) || '@example.com';
        WHEN 'phone' THEN
            masked := entity_masked_phone(CASE kind WHEN 's' THEN substr(original, 2) ELSE original END, digits);
        WHEN 'hash' THEN
            number := ('x' || left(digits, 7))::bit(28)::integer::text;
            CASE kind
            WHEN '3' THEN projected := to_jsonb(number::integer); written := number;
            WHEN '6' THEN projected := (number || '.00')::jsonb; written := '"' || number || '"';
            WHEN 'n' THEN projected := (number || '.0')::jsonb; written := number || '.0';
            WHEN 'g' THEN
                projected := to_jsonb('g' || left(digits, 32)::uuid);
                written := '"' || left(digits, 32)::uuid || '"';
            WHEN '?' THEN projected := 'false'; written := 'false';
            ELSE masked := 'h:' || left(digits, 20);
            END CASE;
        WHEN 'blank' THEN
            CASE kind
            WHEN '3' THEN projected := '0'; written := '0';
            WHEN '6' THEN projected := '0.00'; written := '"0"';
            WHEN 'n' THEN projected := '0.0'; written := '0.0';
            WHEN '?' THEN projected := 'false'; written := 'false';
            WHEN 'g' THEN
                projected := '"g00000000-0000-0000-0000-000000000000"';
                written := '"00000000-0000-0000-0000-000000000000"';
            WHEN 't' THEN projected := '"t2000-01-01T00:00:00.0000000"'; written := '"2000-01-01T00:00:00Z"';
            WHEN 'b' THEN projected := '"b"'; written := '""';
            ELSE masked := '';
            END CASE;
        END CASE;
        IF masked IS NOT NULL THEN
            projected := to_jsonb('s' || masked);
            written := '"' || masked || '"';
        END IF;
        IF projected IS NULL THEN
            props := props - names[i];
            content := entity_with_line(content, members[i], '');
        ELSE
            props := props || jsonb_build_object(names[i], projected);
            type := CASE WHEN masked IS NULL THEN
                CASE kind WHEN '6' THEN 'Int64' WHEN 'g' THEN 'Guid' WHEN 't' THEN 'DateTime' WHEN 'b' THEN 'Binary' END
            END;
            content := entity_with_line(
                content, members[i],
                E'\n' || coalesce(E'\t,' || left(members[i], -1) || '@odata.type":"Edm.' || type || E'"\t', '')
                    || ',' || members[i] || ':' || written);
        END IF;
    END LOOP;
END
$$;
"""


def replace_functions(apps: Any, schema_editor: Any) -> None:
    tables = apps.get_model("storage", "Table").objects.filter(deleted_at=None, distributed=False)
    for table_id, account_id, kind in tables.values_list("pk", "account_id", "account__kind").iterator():
        schema_editor.execute(relations.create_function(table_id, account_id, AccountKind(kind)))


def spread_functions(apps: Any, schema_editor: Any) -> None:
    """Give the functions to the nodes of distributed tables, if Citus did not do it when they were created."""
    distributed = apps.get_model("storage", "Table").objects.filter(distributed=True)
    if distributed.exists():
        from storage.cluster import ddl

        if ddl.is_coordinator():
            for function in ddl.missing_helpers():
                schema_editor.execute(ddl.spread_helper(function))


def note_tables(apps: Any, schema_editor: Any) -> None:
    tables = apps.get_model("storage", "Table").objects.filter(distributed=False)
    noted = apps.get_model("storage", "OldRows")
    noted.objects.bulk_create(
        (noted(table_id=table_id) for table_id in tables.values_list("pk", flat=True).iterator()), 1000
    )


class Migration(migrations.Migration):
    dependencies = [("storage", "0054_job_starters")]

    operations = [
        migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop),
        migrations.RunPython(spread_functions, migrations.RunPython.noop),
        migrations.RunPython(replace_functions, migrations.RunPython.noop),
        migrations.CreateModel(
            "OldRows",
            [
                (
                    "table",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="storage.table",
                    ),
                ),
                ("last", models.JSONField(default=None, null=True)),
            ],
        ),
        migrations.RunPython(note_tables, migrations.RunPython.noop),
    ]

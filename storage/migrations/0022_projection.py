"""The typed projection of an entity from its texts, which is all that history keeps of it."""

from django.db import migrations

# storage.domain.values.encoding.escape over the JSON text of a string. Its tokens: a pair of surrogates, which is one
# character, any other escape, and what is not escaped.
ESCAPED = r"""
CREATE FUNCTION entity_escaped(quoted text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (
        SELECT string_agg(
            CASE
                WHEN token = '\u0000' THEN '\u0001\u0001'
                WHEN token = '\u0001' THEN '\u0001\u0002'
                WHEN token = '\ue000' THEN '\ue000\u0802'
                WHEN length(token) = 6 AND token ~ '^\\ud[89a-f]' THEN
                    '\ue000\u' || lpad(to_hex(('x' || right(token, 4))::bit(16)::integer - 55296 + 2), 4, '0')
                ELSE token
            END, '' ORDER BY place)
        FROM regexp_matches(quoted, '\\ud[89ab]..\\ud[c-f]..|\\u....|\\.|[^\\]+', 'g')
            WITH ORDINALITY AS found (tokens, place),
            LATERAL (SELECT tokens[1] AS token) AS first
    );
END
$$
"""

# what storage.domain.entities.entity.write_fragments projects the properties to whose other two texts it wrote
PROJECTION = r"""
CREATE FUNCTION entity_projection(anns text, vals text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    line text;
    name text;
    value text;
    type text := '';
    members text := '';
BEGIN
    FOREACH line IN ARRAY string_to_array(substr(vals, 4), E'\n,"') LOOP
        name := split_part(line, '"', 1);
        value := substr(line, length(name) + 3);
        IF anns <> '' THEN
            type := split_part(split_part(anns, ',"' || name || '@odata.type":"Edm.', 2), '"', 1);
        END IF;
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
$$
"""


class Migration(migrations.Migration):
    dependencies = [("storage", "0021_history")]

    operations = [
        migrations.RunSQL(ESCAPED, "DROP FUNCTION entity_escaped"),
        migrations.RunSQL(PROJECTION, "DROP FUNCTION entity_projection"),
    ]

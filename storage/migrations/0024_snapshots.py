"""Snapshots, branches, and the functions that mask what a branch copies."""

import django.db.models.deletion
from django.db import migrations, models

# a hash with a key, which must have a fixed length
HASH = """
CREATE FUNCTION entity_keyed_hash(secret bytea, value text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256(secret || sha256(secret || convert_to(value, 'UTF8')))
$$
"""

MASKED_KEY = """
CREATE FUNCTION entity_masked_key(value text, secret bytea) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'h:' || left(encode(entity_keyed_hash(secret, value), 'hex'), 20)
$$
"""

MASKED_NAME = """
CREATE FUNCTION entity_masked_name(hash bytea) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT split_part(
        'Ada Ahmet Aiko Alma Amara Anders Aylin Bao Berk Bianca Carla Cem Chen Clara Daniel '
        'Deniz Diego Elif Elena Emeka Emil Emre Fatma Felix Freya Gita Hana Hugo Ida Ines Ivan '
        'Jana Jonas Kemal Keiko Lale Lars Leila Lena Li Lucas Maja Marta Mei Merve Milan Mina '
        'Nadia Nils Noor Olga Omar Pablo Priya Rafael Rosa Sami Selin Sofia Tariq Uma Vera Yusuf '
        'Zeynep',
        ' ', get_byte(hash, 0) % 64 + 1) || ' ' || split_part(
        'Acar Adeyemi Aksoy Alvarez Andersen Arslan Aydin Bauer Becker Bianchi Bose Castro Chen '
        'Costa Dahl Demir Diaz Dogan Eriksen Farouk Fischer Fontana Garcia Gupta Haddad Hansen '
        'Ito Ivanov Jansen Kaplan Kaya Keller Kim Kovac Kumar Larsen Lehmann Lin Lopez Mancini '
        'Meyer Mori Nakamura Novak Nowak Okafor Olsen Ortiz Ozturk Park Patel Petrov Reyes Rossi '
        'Sahin Santos Sato Schmidt Silva Tanaka Vogel Wang Weber Yilmaz',
        ' ', get_byte(hash, 1) % 64 + 1)
$$
"""

# the digits of a number in its form, the country code kept; what has too few of them becomes ten
MASKED_PHONE = """
CREATE FUNCTION entity_masked_phone(value text, hash text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    digits text := translate(hash, 'abcdef', '024680');
    written text := '';
    symbol text;
    place integer := 0;
BEGIN
    IF length(regexp_replace(value, '[^0-9]', '', 'g')) < 5 OR length(value) > 40 THEN
        RETURN '+00' || left(digits, 10);
    END IF;
    FOREACH symbol IN ARRAY string_to_array(value, NULL) LOOP
        IF symbol BETWEEN '0' AND '9' THEN
            place := place + 1;
            IF place > 2 OR NOT starts_with(value, '+') THEN
                symbol := substr(digits, place, 1);
            END IF;
        ELSIF symbol NOT IN ('+', ' ', '-', '(', ')', '.') THEN
            symbol := ' ';
        END IF;
        written := written || symbol;
    END LOOP;
    RETURN written;
END
$$
"""

# Lines begin with a line break, which no value has: five times as fast as a regular expression.
REPLACED_LINE = r"""
CREATE FUNCTION entity_replaced_line(lines text, start text, line text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    first integer := strpos(lines, start);
    rest text;
    stop integer;
BEGIN
    IF first = 0 THEN
        RETURN lines;
    END IF;
    rest := substr(lines, first + 1);
    stop := strpos(rest, E'\n');
    RETURN left(lines, first - 1) || line || CASE WHEN stop = 0 THEN '' ELSE substr(rest, stop) END;
END
$$
"""

# The three texts of a row. Each property is one line of vals and at most one of anns, whose starts are given. The first
# letter of a projected value is its type: see storage.domain.values.encoding.project.
MASKED = r"""
CREATE FUNCTION entity_masked(
    names text[], starts text[], annotation_starts text[], masks text[], constants text[],
    secret bytea, INOUT props jsonb, INOUT anns text, INOUT vals text
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
            vals := entity_replaced_line(vals, starts[i], '');
        ELSE
            props := props || jsonb_build_object(names[i], projected);
            vals := entity_replaced_line(vals, starts[i], starts[i] || written);
        END IF;
        -- a Double has one only if it is not finite
        IF anns <> '' AND (masked IS NOT NULL OR projected IS NULL OR kind = 'n') THEN
            anns := entity_replaced_line(anns, annotation_starts[i], '');
        END IF;
    END LOOP;
END
$$
"""


class Migration(migrations.Migration):
    dependencies = [("storage", "0022_projection")]

    operations = [
        migrations.RunSQL(HASH, "DROP FUNCTION entity_keyed_hash"),
        migrations.RunSQL(MASKED_KEY, "DROP FUNCTION entity_masked_key"),
        migrations.RunSQL(MASKED_NAME, "DROP FUNCTION entity_masked_name"),
        migrations.RunSQL(MASKED_PHONE, "DROP FUNCTION entity_masked_phone"),
        migrations.RunSQL(REPLACED_LINE, "DROP FUNCTION entity_replaced_line"),
        migrations.RunSQL(MASKED, "DROP FUNCTION entity_masked"),
        migrations.CreateModel(
            name="Snapshot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("reason", models.CharField(max_length=8)),
                ("is_whole", models.BooleanField(default=True)),
                ("taken_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(default=None, null=True)),
                ("visible", models.TextField()),
                ("ticks", models.BigIntegerField()),
                ("service_properties", models.JSONField(default=None, null=True)),
                ("actor_kind", models.CharField(max_length=8)),
                ("actor", models.CharField(blank=True, default="", max_length=256)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="storage.account",
                    ),
                ),
            ],
            options={
                "indexes": (models.Index(fields=("expires_at",), name="snapshots_by_expiry"),),
                "constraints": (
                    models.UniqueConstraint(fields=("account", "name"), name="one_snapshot_of_a_name"),
                ),
            },
        ),
        migrations.CreateModel(
            name="SnapshotTable",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("folded_name", models.CharField(max_length=255)),
                ("description", models.TextField(blank=True, default="", max_length=2000)),
                ("tags", models.JSONField(default=list)),
                ("throughput", models.PositiveIntegerField(default=0)),
                ("policies", models.JSONField(default=list)),
                ("entities", models.BigIntegerField()),
                ("size", models.BigIntegerField()),
                ("is_copied", models.BooleanField(default=False)),
                (
                    "snapshot",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tables",
                        to="storage.snapshot",
                    ),
                ),
                (
                    "table",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="storage.table",
                    ),
                ),
            ],
            options={
                "constraints": (
                    models.UniqueConstraint(fields=("snapshot", "table"), name="one_table_of_a_snapshot"),
                ),
            },
        ),
        migrations.CreateModel(
            name="SnapshotSchedule",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="storage.account",
                    ),
                ),
                ("hour", models.PositiveSmallIntegerField()),
                ("weekday", models.PositiveSmallIntegerField(default=None, null=True)),
                ("keep", models.PositiveSmallIntegerField()),
                ("next_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Branch",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="branch",
                        serialize=False,
                        to="storage.account",
                    ),
                ),
                ("source_name", models.CharField(max_length=24)),
                ("snapshot_name", models.CharField(blank=True, default="", max_length=64)),
                ("at", models.DateTimeField()),
                ("masking", models.JSONField(default=dict)),
                ("originals", models.JSONField(default=list)),
                ("actor_kind", models.CharField(max_length=8)),
                ("actor", models.CharField(blank=True, default="", max_length=256)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("reset_at", models.DateTimeField(default=None, null=True)),
                ("reset_entities", models.BigIntegerField(default=0)),
                ("reset_seconds", models.FloatField(default=0)),
                (
                    "origin",
                    models.ForeignKey(
                        default=None,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="storage.snapshot",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="branches",
                        to="storage.account",
                    ),
                ),
            ],
        ),
    ]

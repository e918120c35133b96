"""Property indexes, history, snapshots, branches, kinds of accounts, distribution and moments: all since 0.4."""

from typing import Any

from django.db import migrations, models
from django.utils import timezone

from storage.domain.values.kinds import AccountKind
from storage.migrations._operations import FREE, Together, create_model, replacing
from storage.sql import batch, history, moments, relations

# as storage.domain.entities.entity measures entities of Cosmos accounts; they have no limit of properties
COSMOS_EXCESS = r"""
CREATE FUNCTION cosmos_entity_excess(pk text, rk text, anns text, vals text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'EntityTooLarge'
    WHERE octet_length(pk) + octet_length(rk)
        + octet_length(regexp_replace(vals, '\\u[0-9a-f]{4}', 'xxx', 'g')) > 2097152
$$
"""

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

# the request units that are left to tables: storage.sql.throughput
THROUGHPUT = """
CREATE UNLOGGED TABLE storage_throughput (
    table_id bigint PRIMARY KEY,
    is_granted boolean NOT NULL,
    units float8 NOT NULL,
    taken_at timestamptz NOT NULL
) WITH (fillfactor = 50)
"""

CLUSTER = "UPDATE storage_historysegment SET cluster = (SELECT system_identifier FROM pg_control_system())"


def start_histories(apps: Any, schema_editor: Any) -> None:
    segments, now = apps.get_model("storage", "HistorySegment"), timezone.now()
    for account_id in apps.get_model("storage", "Account").objects.values_list("pk", flat=True):
        for number in (1, 2):
            segments.objects.create(account_id=account_id, number=number, started_at=now)
            schema_editor.execute(history.create(account_id, number))
        schema_editor.execute(history.write_to(account_id, 1))


def create_functions(apps: Any, schema_editor: Any) -> None:
    tables = apps.get_model("storage", "Table").objects.filter(deleted_at=None)
    for table_id, account_id, kind in tables.values_list("pk", "account_id", "account__kind").iterator():
        name, writers = relations.relation_name(table_id), history.writers_name(account_id)
        schema_editor.execute(batch.create_function(name, writers, AccountKind(kind)))


class Migration(migrations.Migration):
    replaces = replacing(
        "storage",
        "0014_change_functions",
        "0015_table_use",
        "0016_property_index",
        "0017_account_kind",
        "0018_adaptive_indexes",
        "0019_throughput",
        "0020_long_keys",
        "0021_history",
        "0022_projection",
        "0023_feed_marks",
        "0024_snapshots",
        "0027_history_cluster",
        "0028_consistency",
        "0029_distribution",
        "0030_throughput",
        "0031_distribution_request",
        "0032_long_operation",
        "0033_database_version",
        "0034_moments",
        "0035_branch_is_whole",
    )

    dependencies = [("storage", "0013_rename_models")]

    operations = [
        Together(
            migrations.AddField(
                "account", "kind", models.CharField(db_default="storage", default="storage", max_length=7)
            ),
            migrations.AddField(
                "account", "adaptive_indexes", models.BooleanField(db_default=False, default=False)
            ),
            migrations.AddField(
                "account", "history_days", models.PositiveSmallIntegerField(db_default=7, default=7)
            ),
            migrations.AddField("account", "history_bytes", models.BigIntegerField(default=None, null=True)),
            migrations.AddField(
                "account",
                "consistency",
                models.CharField(max_length=16, default="Strong", db_default="Strong"),
            ),
            migrations.AddField(
                "account", "max_staleness", models.PositiveIntegerField(default=5, db_default=5)
            ),
            migrations.AddField(
                "account", "distributes", models.BooleanField(db_default=False, default=False)
            ),
            migrations.AlterField("table", "name", models.CharField(max_length=255)),
            migrations.AlterField("table", "folded_name", models.CharField(max_length=255)),
            migrations.AddField("table", "written_at", models.DateTimeField(default=None, null=True)),
            migrations.AddField("table", "throughput", models.PositiveIntegerField(default=0, db_default=0)),
            migrations.AddField("table", "distributed", models.BooleanField(db_default=False, default=False)),
            migrations.AddField("table", "distributed_rows", models.BigIntegerField(db_default=0, default=0)),
            migrations.AddField(
                "table", "distributed_bytes", models.BigIntegerField(db_default=0, default=0)
            ),
            migrations.AddField("table", "changes_since", models.DateTimeField(default=None, null=True)),
            migrations.AddIndex(
                "table",
                models.Index(
                    fields=("account",), condition=models.Q(distributed=True), name="distributed_tables"
                ),
            ),
            migrations.AlterField(
                "activity", "table_name", models.CharField(blank=True, default="", max_length=255)
            ),
            migrations.AlterField(
                "registeredsas", "table_name", models.CharField(blank=True, default="", max_length=255)
            ),
            create_model(
                "TableRequests",
                hour=models.DateTimeField(),
                requests=models.BigIntegerField(),
                table=models.ForeignKey("storage.table", models.CASCADE, related_name="+", **FREE),
                indexes=(models.Index(name="table_requests_by_hour", fields=("hour",)),),
                constraints=(models.UniqueConstraint(name="one_count_of_a_table", fields=("table", "hour")),),
            ),
            create_model(
                "PropertyIndex",
                name=models.CharField(max_length=255),
                state=models.CharField(max_length=8),
                origin=models.CharField(max_length=8),
                error=models.TextField(blank=True, default=""),
                created_at=models.DateTimeField(auto_now_add=True),
                last_used_at=models.DateTimeField(null=True, default=None),
                scans=models.BigIntegerField(default=0),
                table=models.ForeignKey("storage.table", models.CASCADE, related_name="indexes"),
                constraints=(
                    models.UniqueConstraint(name="one_index_of_a_property", fields=("table", "name")),
                ),
            ),
            create_model(
                "PropertyScans",
                name=models.CharField(max_length=255),
                day=models.DateField(),
                scans=models.BigIntegerField(),
                seconds=models.FloatField(),
                table=models.ForeignKey("storage.table", models.CASCADE, related_name="+", **FREE),
                indexes=(models.Index(name="scans_by_day", fields=("day",)),),
                constraints=(
                    models.UniqueConstraint(name="scans_of_a_day", fields=("table", "name", "day")),
                ),
            ),
            create_model(
                "HistoryActor",
                id=models.AutoField(primary_key=True, serialize=False),
                kind=models.CharField(max_length=8),
                name=models.CharField(max_length=256),
                address=models.CharField(max_length=64),
                agent=models.CharField(max_length=256),
                token=models.CharField(max_length=64),
                constraints=(
                    models.UniqueConstraint(
                        name="one_actor", fields=("kind", "name", "address", "agent", "token")
                    ),
                ),
            ),
            create_model(
                "HistorySegment",
                number=models.PositiveIntegerField(),
                started_at=models.DateTimeField(),
                ended_at=models.DateTimeField(null=True, default=None),
                packed=models.BooleanField(default=False),
                dropped_at=models.DateTimeField(null=True, default=None),
                last_xid=models.BigIntegerField(null=True, default=None),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="+"),
                cluster=models.BigIntegerField(null=True, default=None),
                constraints=(
                    models.UniqueConstraint(name="one_segment_of_a_number", fields=("account", "number")),
                ),
            ),
            create_model(
                "Snapshot",
                name=models.CharField(max_length=64),
                reason=models.CharField(max_length=8),
                is_whole=models.BooleanField(default=True),
                taken_at=models.DateTimeField(),
                expires_at=models.DateTimeField(null=True, default=None),
                visible=models.TextField(),
                ticks=models.BigIntegerField(),
                service_properties=models.JSONField(null=True, default=None),
                actor_kind=models.CharField(max_length=8),
                actor=models.CharField(max_length=256, blank=True, default=""),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="snapshots"),
                indexes=(models.Index(name="snapshots_by_expiry", fields=("expires_at",)),),
                constraints=(
                    models.UniqueConstraint(name="one_snapshot_of_a_name", fields=("account", "name")),
                ),
            ),
            create_model(
                "SnapshotTable",
                name=models.CharField(max_length=255),
                folded_name=models.CharField(max_length=255),
                description=models.TextField(max_length=2000, blank=True, default=""),
                tags=models.JSONField(default=list),
                throughput=models.PositiveIntegerField(default=0),
                policies=models.JSONField(default=list),
                entities=models.BigIntegerField(),
                size=models.BigIntegerField(),
                is_copied=models.BooleanField(default=False),
                snapshot=models.ForeignKey("storage.snapshot", models.CASCADE, related_name="tables"),
                table=models.ForeignKey(
                    "storage.table", models.DO_NOTHING, related_name="+", db_constraint=False
                ),
                constraints=(
                    models.UniqueConstraint(name="one_table_of_a_snapshot", fields=("snapshot", "table")),
                ),
            ),
            create_model(
                "SnapshotSchedule",
                account=models.OneToOneField(
                    "storage.account", models.CASCADE, primary_key=True, serialize=False, related_name="+"
                ),
                hour=models.PositiveSmallIntegerField(),
                weekday=models.PositiveSmallIntegerField(null=True, default=None),
                keep=models.PositiveSmallIntegerField(),
                next_at=models.DateTimeField(),
            ),
            create_model(
                "Branch",
                account=models.OneToOneField(
                    "storage.account",
                    models.CASCADE,
                    primary_key=True,
                    serialize=False,
                    related_name="branch",
                ),
                source_name=models.CharField(max_length=24),
                snapshot_name=models.CharField(max_length=64, blank=True, default=""),
                at=models.DateTimeField(),
                masking=models.JSONField(default=dict),
                originals=models.JSONField(default=list),
                actor_kind=models.CharField(max_length=8),
                actor=models.CharField(max_length=256, blank=True, default=""),
                created_at=models.DateTimeField(auto_now_add=True),
                reset_at=models.DateTimeField(null=True, default=None),
                reset_entities=models.BigIntegerField(default=0),
                reset_seconds=models.FloatField(default=0),
                origin=models.ForeignKey(
                    "storage.snapshot", models.SET_NULL, null=True, default=None, related_name="+"
                ),
                source=models.ForeignKey(
                    "storage.account", models.SET_NULL, null=True, related_name="branches"
                ),
                is_whole=models.BooleanField(default=True, db_default=True),
            ),
            create_model(
                "FeedMark",
                snapshot=models.TextField(),
                next_xid=models.BigIntegerField(db_index=True),
                changes=models.BigIntegerField(),
                at=models.BigIntegerField(),
            ),
            create_model(
                "DistributionRequest",
                table=models.OneToOneField(
                    "storage.table", models.CASCADE, primary_key=True, serialize=False, related_name="+"
                ),
                distributed=models.BooleanField(),
                actor=models.JSONField(),
                asked_at=models.DateTimeField(auto_now_add=True),
                error=models.TextField(blank=True, default=""),
            ),
            create_model(
                "LongOperation",
                verb=models.CharField(max_length=32),
                lock=models.IntegerField(),
                actor=models.JSONField(),
                detail=models.JSONField(default=dict),
                started_at=models.DateTimeField(auto_now_add=True),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="+"),
                table=models.ForeignKey(
                    "storage.table", models.DO_NOTHING, null=True, related_name="+", **FREE
                ),
                undoes=models.ForeignKey(
                    "storage.activity", models.DO_NOTHING, null=True, related_name="+", **FREE
                ),
            ),
            create_model(
                "DatabaseVersion",
                writer=models.PositiveIntegerField(),
                release=models.CharField(max_length=32),
            ),
        ),
        migrations.RunSQL(COSMOS_EXCESS, "DROP FUNCTION cosmos_entity_excess"),
        migrations.RunSQL(KEY_HASH, "DROP FUNCTION entity_key_hash"),
        migrations.RunSQL(MAKE_ROOM, "DROP FUNCTION entity_make_room"),
        migrations.RunSQL(ESCAPED, "DROP FUNCTION entity_escaped"),
        migrations.RunSQL(PROJECTION, "DROP FUNCTION entity_projection"),
        migrations.RunSQL(HASH, "DROP FUNCTION entity_keyed_hash"),
        migrations.RunSQL(MASKED_KEY, "DROP FUNCTION entity_masked_key"),
        migrations.RunSQL(MASKED_NAME, "DROP FUNCTION entity_masked_name"),
        migrations.RunSQL(MASKED_PHONE, "DROP FUNCTION entity_masked_phone"),
        migrations.RunSQL(REPLACED_LINE, "DROP FUNCTION entity_replaced_line"),
        migrations.RunSQL(MASKED, "DROP FUNCTION entity_masked"),
        migrations.RunSQL(THROUGHPUT, "DROP TABLE storage_throughput"),
        migrations.RunSQL(history.SEQUENCE, "DROP SEQUENCE history_seq"),
        migrations.RunSQL(moments.CREATE, moments.DROP),
        migrations.RunPython(start_histories, migrations.RunPython.noop),
        migrations.RunSQL(CLUSTER, migrations.RunSQL.noop),
        migrations.RunPython(create_functions, migrations.RunPython.noop),
    ]

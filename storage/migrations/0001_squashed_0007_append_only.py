"""Accounts, tables, access, usage and activity, and what every entity relation is made of: as in 0.4.

SQL functions are immutable, since a distributed PostgreSQL refuses others in ON CONFLICT DO UPDATE.
"""

from django.db import migrations, models

from storage.migrations._operations import FREE, Together, create_model, replacing

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

# what the activity log says cannot be changed, even by mistake; old entries are deleted
APPEND_ONLY = """
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
    initial = True
    replaces = replacing(
        "storage",
        "0001_initial",
        "0002_entity_template",
        "0003_access",
        "0004_observations",
        "0005_networks",
        "0006_activity",
        "0007_append_only",
    )

    operations = [
        Together(
            create_model(
                "Account",
                name=models.CharField(max_length=24, unique=True),
                primary_key_sealed=models.BinaryField(),
                secondary_key_sealed=models.BinaryField(),
                enabled=models.BooleanField(default=True),
                created_at=models.DateTimeField(auto_now_add=True),
                service_properties=models.JSONField(null=True, default=None),
                shared_key_access=models.BooleanField(default=True),
                networks=models.JSONField(default=list),
                colour=models.CharField(max_length=7, blank=True, default=""),
                description=models.TextField(max_length=2000, blank=True, default=""),
                label=models.CharField(max_length=64, blank=True, default=""),
                protected=models.BooleanField(default=False),
                read_only=models.BooleanField(default=False),
            ),
            create_model(
                "Table",
                name=models.CharField(max_length=63),
                folded_name=models.CharField(max_length=63),
                created_at=models.DateTimeField(auto_now_add=True),
                deleted_at=models.DateTimeField(null=True, default=None),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="tables"),
                description=models.TextField(max_length=2000, blank=True, default=""),
                kept_until=models.DateTimeField(null=True, default=None),
                tags=models.JSONField(default=list),
                constraints=(
                    models.UniqueConstraint(
                        name="one_table_of_a_name",
                        fields=("account", "folded_name"),
                        condition=models.Q(deleted_at=None),
                    ),
                ),
            ),
            create_model(
                "StoredAccessPolicy",
                place=models.PositiveSmallIntegerField(),
                identifier=models.CharField(max_length=64),
                has_policy=models.BooleanField(),
                start=models.CharField(max_length=28, null=True),
                expiry=models.CharField(max_length=28, null=True),
                permission=models.CharField(max_length=8, null=True),
                table=models.ForeignKey("storage.table", models.CASCADE, related_name="policies"),
                constraints=(
                    models.UniqueConstraint(name="one_policy_at_a_place", fields=("table", "place")),
                    models.UniqueConstraint(
                        name="one_policy_of_an_identifier", fields=("table", "identifier")
                    ),
                ),
            ),
            create_model(
                "AnalyticsProgress",
                account=models.OneToOneField(
                    "storage.account", models.CASCADE, primary_key=True, serialize=False, db_constraint=False
                ),
                minute=models.DateTimeField(null=True, default=None),
                hour=models.DateTimeField(null=True, default=None),
                capacity=models.DateTimeField(null=True, default=None),
            ),
            create_model(
                "Job",
                name=models.CharField(primary_key=True, max_length=32, serialize=False),
                done_at=models.DateTimeField(),
            ),
            create_model(
                "CredentialUse",
                authentication=models.CharField(max_length=16),
                name=models.CharField(max_length=256),
                hour=models.DateTimeField(),
                address=models.CharField(max_length=64),
                agent=models.CharField(max_length=256),
                process=models.CharField(max_length=16),
                count=models.BigIntegerField(),
                last_used_at=models.DateTimeField(),
                account=models.ForeignKey("storage.account", models.CASCADE, **FREE),
                indexes=(models.Index(name="uses_by_hour", fields=("hour",)),),
                constraints=(
                    models.UniqueConstraint(
                        name="one_use_in_an_hour",
                        fields=("account", "authentication", "name", "hour", "address", "agent", "process"),
                    ),
                ),
            ),
            create_model(
                "RequestCount",
                process=models.CharField(max_length=16),
                minutes=models.PositiveSmallIntegerField(),
                period=models.DateTimeField(),
                secondary=models.BooleanField(),
                operation=models.CharField(max_length=32),
                authentication=models.CharField(max_length=16),
                status=models.PositiveSmallIntegerField(),
                error=models.CharField(max_length=64),
                requests=models.BigIntegerField(),
                ingress=models.BigIntegerField(),
                egress=models.BigIntegerField(),
                server_time=models.FloatField(),
                total_time=models.FloatField(),
                latencies=models.JSONField(),
                account=models.ForeignKey("storage.account", models.CASCADE, **FREE),
                indexes=(models.Index(name="counts_by_period", fields=("minutes", "period")),),
                constraints=(
                    models.UniqueConstraint(
                        name="one_count_of_a_kind",
                        fields=(
                            "account",
                            "minutes",
                            "period",
                            "process",
                            "secondary",
                            "operation",
                            "authentication",
                            "status",
                            "error",
                        ),
                    ),
                ),
            ),
            create_model(
                "SeenCredential",
                authentication=models.CharField(max_length=16),
                name=models.CharField(max_length=256),
                parameters=models.JSONField(),
                first_used_at=models.DateTimeField(),
                last_used_at=models.DateTimeField(),
                address=models.CharField(max_length=64),
                agent=models.CharField(max_length=256),
                account=models.ForeignKey("storage.account", models.CASCADE, **FREE),
                indexes=(models.Index(name="credentials_by_last_use", fields=("last_used_at",)),),
                constraints=(
                    models.UniqueConstraint(
                        name="one_of_a_credential", fields=("account", "authentication", "name")
                    ),
                ),
            ),
            create_model(
                "Activity",
                at=models.DateTimeField(auto_now_add=True),
                verb=models.CharField(max_length=32),
                account_name=models.CharField(max_length=24, blank=True, default=""),
                table_name=models.CharField(max_length=63, blank=True, default=""),
                actor_kind=models.CharField(max_length=8),
                actor=models.CharField(max_length=256, blank=True, default=""),
                address=models.CharField(max_length=64, blank=True, default=""),
                agent=models.CharField(max_length=256, blank=True, default=""),
                request_id=models.CharField(max_length=64, blank=True, default=""),
                detail=models.JSONField(default=dict),
                before=models.JSONField(null=True, default=None),
                after=models.JSONField(null=True, default=None),
                account=models.ForeignKey(
                    "storage.account", models.DO_NOTHING, null=True, related_name="+", **FREE
                ),
                table=models.ForeignKey(
                    "storage.table", models.DO_NOTHING, null=True, related_name="+", **FREE
                ),
                undoes=models.ForeignKey(
                    "storage.activity",
                    models.DO_NOTHING,
                    null=True,
                    related_name="undone_by",
                    db_constraint=False,
                ),
                indexes=(
                    models.Index(name="activity_of_an_account", fields=("account", "-id")),
                    models.Index(name="activity_by_time", fields=("at",)),
                ),
            ),
            create_model(
                "EntityChange",
                place=models.PositiveIntegerField(),
                partition_key=models.TextField(),
                row_key=models.TextField(),
                key_digest=models.BinaryField(max_length=16),
                before=models.TextField(null=True, default=None),
                after=models.TextField(null=True, default=None),
                ticks_before=models.BigIntegerField(null=True, default=None),
                ticks_after=models.BigIntegerField(null=True, default=None),
                activity=models.ForeignKey("storage.activity", models.CASCADE, related_name="changes"),
                table=models.ForeignKey("storage.table", models.DO_NOTHING, related_name="+", **FREE),
                indexes=(models.Index(name="changes_of_an_entity", fields=("table", "key_digest")),),
                constraints=(
                    models.UniqueConstraint(name="one_change_at_a_place", fields=("activity", "place")),
                ),
            ),
        ),
        migrations.RunSQL(TEMPLATE, "DROP TABLE entity_template"),
        migrations.RunSQL(KEY_LENGTH, "DROP FUNCTION entity_key_length"),
        migrations.RunSQL(WITHOUT, "DROP FUNCTION entity_without"),
        migrations.RunSQL(EXCESS, "DROP FUNCTION entity_excess"),
        migrations.RunSQL(APPEND_ONLY, "DROP FUNCTION activity_append_only"),
        *(
            migrations.RunSQL(TRIGGER.format(table=table), f"DROP TRIGGER append_only ON {table}")
            for table in ("storage_activity", "storage_entitychange")
        ),
    ]

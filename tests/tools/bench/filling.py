"""Fill a data folder quickly: entities by one SQL statement, tables and accounts by the operations of the product.

`tests.tools.bench.size` runs it while no server uses the folder, as `python3 -m tests.tools.bench.filling` with the
folder and the numbers of entities, tables and accounts.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import django

PER_PARTITION = 1000
PER_OWNER = 10
TABLE = "entities"
ACCOUNT = "devstoreaccount1"

# lost rows can be made again, and without a log the inserts take a third of the time
UNSAFE = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "8GB",
    "autovacuum": "off",
}


@dataclass(frozen=True, slots=True)
class Entities:
    """Entities number 0 to size - 1 in the order of their keys: four properties, and ten entities of each owner."""

    size: int

    def key(self, number: int) -> tuple[str, str]:
        return f"p{number // PER_PARTITION:07}", f"r{number:09}"

    @property
    def owners(self) -> int:
        return self.size // PER_OWNER

    def owner(self, number: int) -> str:
        return f"owner-{number % self.owners:07}"

    def body(self, number: int) -> str:
        """Return an existing entity as a client would have sent it."""
        partition_key, row_key = self.key(number)
        return (
            f'{{"PartitionKey":"{partition_key}","RowKey":"{row_key}","Owner":"{self.owner(number)}",'
            f'"Level":{number % 10},"Score":{number * 7919 % self.size}.25,'
            f'"Active":{"true" if number % 2 else "false"}}}'
        )

    def new(self, number: int, partition_key: str, row_key: str) -> str:
        """Return one more entity as a client sends it, which no query finds."""
        return (
            f'{{"PartitionKey":"{partition_key}","RowKey":"{row_key}","Owner":"new-{number % self.owners}",'
            f'"Level":{number % 10},"Score":-{number * 7919 % self.size}.25,'
            f'"Active":{"true" if number % 2 else "false"}}}'
        )


FILL = """
INSERT INTO {relation} (pk, rk, ts, props, anns, vals)
SELECT
    'p' || lpad((n / {per_partition})::text, 7, '0'),
    'r' || lpad(n::text, 9, '0'),
    (extract(epoch FROM statement_timestamp()) * 10000000)::bigint,
    jsonb_build_object('Owner', 's' || owner, 'Level', n % 10, 'Score', score, 'Active', n % 2 = 1),
    '',
    E'\\n,"Active":' || CASE WHEN n % 2 = 1 THEN 'true' ELSE 'false' END
        || E'\\n,"Level":' || n % 10 || E'\\n,"Owner":"' || owner || E'"\\n,"Score":' || score
FROM generate_series(0, {size}::bigint - 1) AS n
CROSS JOIN LATERAL (
    SELECT 'owner-' || lpad((n % {owners})::text, 7, '0') AS owner, n * 7919 % {size} + 0.25 AS score
) AS made
"""


def main(arguments: list[str] | None = None) -> int:
    data, *numbers = sys.argv[1:] if arguments is None else arguments
    entities, tables, accounts = map(int, numbers)
    with filled_folder(data):
        with told(f"{entities:,} entities"):
            fill_table(Entities(entities))
        with told(f"{accounts:,} accounts"):
            names = add_accounts(accounts)
        with told(f"{tables:,} tables"):
            add_tables(tables, names)
    return 0


@contextmanager
def filled_folder(data: str) -> Iterator[None]:
    """Run PostgreSQL in a data folder that no server uses, and prepare it as a server would."""
    from storage.server import options, secret

    os.environ["TABLERO_DATA"] = data
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    result = options.read(os.environ)
    Path(data).mkdir(mode=0o711, parents=True, exist_ok=True)
    secret.ensure(result)
    django.setup()
    from storage.server import database, embedded, migration

    with embedded.running(result, purpose="fill", say=say, settings=UNSAFE):
        migration.prepare(result, say)
        yield
        database.close_pools()


@contextmanager
def told(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    say(f"made {what} in {time.monotonic() - began:.0f} s")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def fill_table(made: Entities) -> None:
    """Create the large table, with an index of the property Score."""
    from django.db import transaction

    from storage.models import Account, Table
    from storage.runtime import job_runner
    from storage.sql import django as sql
    from storage.sql.relations import relation_name
    from storage.tables import indexes, tables

    account = Account.objects.get(name=ACCOUNT)

    def fill(relation: str) -> int:
        sql.execute(
            FILL.format(relation=relation, size=made.size, owners=made.owners, per_partition=PER_PARTITION)
        )
        return made.size

    with transaction.atomic():
        table, _ = tables.create_filled(account, Table(name=TABLE), fill)
    indexes.add(table, "Score")
    job_runner.run_all()
    sql.execute(f"VACUUM (FREEZE, ANALYZE) {relation_name(table.pk)}")


def add_accounts(number: int) -> list[str]:
    from storage.accounts import accounts

    names = [f"account{n:05}" for n in range(number)]
    for name in names:
        accounts.add(name)
    return names


def add_tables(number: int, names: list[str]) -> None:
    """Add one table to each account, and the others to the account of the large table."""
    from storage.models import Account
    from storage.tables import tables

    by_name = {account.name: account for account in Account.objects.all()}
    owners = [by_name[name] for name in names[:number]]
    owners += [by_name[ACCOUNT]] * (number - len(owners))
    for n, account in enumerate(owners):
        tables.create(account, f"table{n:05}")


if __name__ == "__main__":
    sys.exit(main())

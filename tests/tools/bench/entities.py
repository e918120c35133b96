"""The data: numbered entities of ten properties of mixed type and about 1 KB, the same on every side.

They are in one partition, or in many of a hundred: servers slow down with the size of a partition or with the number of
partitions, each in its own way. Every filter of the workloads finds as many entities at any size of a layout, so that
costs compare across sizes."""

import random
from base64 import b64encode
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

PER_OWNER = 10
PER_CITY = 200
VARIANTS = 97
"""Different texts and pictures; prime, so that they do not keep step with the other properties."""


class Layout(Enum):
    """The division of a table's entities into partitions."""

    ONE = "one"
    MANY = "many"


SMALL_PARTITION = 100


@dataclass(frozen=True, slots=True)
class Dataset:
    """Entities number 0 to size - 1 of a table, in the order of their keys; the size is a multiple of 1,000."""

    size: int
    layout: Layout = Layout.ONE

    def __post_init__(self) -> None:
        if self.size < 1000 or self.size % 1000:
            raise ValueError(f"the number of entities must be a multiple of 1,000: {self.size}")

    @property
    def per_partition(self) -> int:
        return self.size if self.layout is Layout.ONE else SMALL_PARTITION

    def key(self, number: int) -> tuple[str, str]:
        return partition_key(number // self.per_partition), row_key(number)

    def new_key(self, number: int) -> tuple[str, str]:
        """Return a key that no entity of the table has, anywhere in the order of the keys."""
        partition, row = self.key(number * 7919 % self.size)
        return partition, f"{row}n{number // self.size}"

    @property
    def per_owner_in_partition(self) -> int:
        """Return the entities of an owner in one partition; they are spread evenly over the table."""
        return max(1, PER_OWNER * self.per_partition // self.size)

    def body(self, number: int, partition_key: str, row_key: str) -> str:
        """Return the entity as a client sends it."""
        turn = number // self.cities
        return (
            f'{{"PartitionKey":"{partition_key}","RowKey":"{row_key}",'
            f'"Owner":"{self.owner(number)}","City":"{self.city(number)}",'
            f'"Active":{"true" if turn % 2 else "false"},"Level":{turn // 2 % 10},'
            f'"Visits@odata.type":"Edm.Int64","Visits":"{5_000_000_000 + number}",'
            f'"Score@odata.type":"Edm.Double","Score":{self.score(number)},'
            f'"Created@odata.type":"Edm.DateTime","Created":"2024-{number % 12 + 1:02}-{number % 28 + 1:02}T'
            f'{number % 24:02}:{number % 60:02}:07.{number % 9 + 1}Z",'
            f'"Id@odata.type":"Edm.Guid","Id":"{guid(number)}",'
            f"{FILLING[number % VARIANTS]}}}"
        )

    def owner(self, number: int) -> str:
        return f"owner-{number % (self.size // PER_OWNER):07}"

    @property
    def cities(self) -> int:
        return self.size // PER_CITY

    def city(self, number: int) -> str:
        return f"city-{number % self.cities:06}"

    def score(self, number: int) -> float:
        """0.25, 1.25, 2.25 ... in an order that has nothing to do with the keys."""
        return number * 7919 % self.size + 0.25


def guid(number: int) -> UUID:
    return UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)


def partition_key(number: int) -> str:
    return f"p{number:06}"


def row_key(number: int) -> str:
    return f"r{number:09}"


def _filling() -> list[str]:
    source = random.Random(20170830)
    syllables = [
        "ta",
        "ble",
        "ro",
        "en",
        "ti",
        "ty",
        "par",
        "key",
        "lo",
        "mi",
        "sa",
        "ver",
        "du",
        "ran",
        "ce",
    ]
    made = []
    for _ in range(VARIANTS):
        words = ["".join(source.choices(syllables, k=source.randint(1, 4))) for _ in range(38)]
        photo = b64encode(source.randbytes(180)).decode()
        made.append(f'"Photo@odata.type":"Edm.Binary","Photo":"{photo}","Notes":"{" ".join(words)}"')
    return made


FILLING = _filling()

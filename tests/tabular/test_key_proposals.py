"""Columns proposed as keys, with the reasons for and against."""

import io
from datetime import UTC, datetime

import pytest

from storage.editing.input_context import InputContext
from storage.tabular import proposals
from storage.tabular.file import RowFile
from storage.tabular.key_proposals import KeySample, NoteKind, assess
from storage.tabular.layout import Wishes
from storage.tabular.mapping import MappingRefused

CONTEXT = InputContext(datetime(2026, 11, 28, tzinfo=UTC))


def propose(header, row, number=175):
    text = "\n".join((header, *(",".join(map(str, row(place))) for place in range(number)))) + "\n"
    return RowFile(lambda: io.BytesIO(text.encode()), Wishes()).propose(CONTEXT)


def pairs(proposal):
    return [(it.partition_key, it.row_key) for it in proposal.keys.proposals]


def kinds(notes):
    return [note.kind for note in notes]


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("country,id,age", lambda n: ("se" if n % 3 else "tr", n, n % 50), ("{country}", "{id}")),
        ("pk,rk,v", lambda n: ("a", n, "x"), ("{pk}", "{rk}")),
        ("country,tenant,id", lambda n: (f"c{n % 3}", f"t{n % 9}", n), ("{tenant}", "{id}")),
        ("tenantId,orderNumber", lambda n: (f"t{n % 9}", n), ("{tenantId}", "{orderNumber}")),
        ("Ort,Kundennr,Umsatz", lambda n: (f"Ort{n % 9}", f"KD-{n:06}", f"{n}.5"), ("{Ort}", "{Kundennr}")),
        ("şehir,müşteri kodu", lambda n: (f"s{n % 9}", f"k{n}"), ("{şehir}", "{müşteri kodu}")),
        ("地区,编号", lambda n: (f"s{n % 9}", f"k{n}"), ("{地区}", "{编号}")),
        (
            "PartitionKey,email,name",
            lambda n: (f"p{n % 9}", f"u{n}@x.y", f"n{n}"),
            ("{PartitionKey}", "{email}"),
        ),
        ("region,row_key", lambda n: (f"p{n % 9}", n), ("{region}", "{row_key}")),
        # unique in each country only
        ("country,id", lambda n: ("se" if n < 90 else "tr", n % 90), ("{country}", "{id}")),
    ],
)
def test_unique_columns_with_names_of_keys_are_chosen(header, row, expected):
    proposal = propose(header, row)
    assert pairs(proposal)[0] == expected and proposal.keys.is_clear
    likely = proposals.with_likely_keys(proposal)
    assert (likely.partition_key, likely.row_key) == expected


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("city,street,no,v", lambda n: (f"c{n % 5}", f"s{n % 7}", n // 35, 5.5), ("{city}", "{street}-{no}")),
        (
            "customer,region,id",
            lambda n: (f"c{n % 5}", f"s{n % 7}", n),
            ("{customer}", "{id}"),
        ),  # or by region
        ("id,name,email", lambda n: (n, f"n{n % 50}", f"u{n}@x.y"), ("{name}", "{id}")),
        ("id,text", lambda n: (n, f"t{n}"), ("all", "{id}")),
        ("a,b", lambda n: (n % 5, n % 7), ("all", "{#row}")),
    ],
)
def test_unclear_keys_are_only_proposed(header, row, expected):
    proposal = propose(header, row)
    assert pairs(proposal)[0] == expected and not proposal.keys.is_clear
    assert proposals.with_likely_keys(proposal) == proposal.mapping
    assert proposal.keys.proposals[-1].row_key == "{#row}"


def test_identifiers_with_forbidden_characters_are_named_with_what_is_wrong():
    proposal = propose("country,path", lambda n: (f"c{n % 3}", f"a/{n}"))
    assert (
        pairs(proposal) == [("{country}", "{#row}"), ("{country}", "{path}")]
        or pairs(proposal)[0][1] == "{#row}"
    )
    proposal = propose("country,id", lambda n: (f"c{n % 3}", f"a/{n}"))
    assert pairs(proposal) == [("{country}", "{#row}"), ("{country}", "{id}")]
    assert kinds(proposal.keys.proposals[1].row_notes) == [NoteKind.UNIQUE, NoteKind.FORBIDDEN]
    assert not proposal.keys.is_clear


TWO = "2 different values in 12 rows"
SORTED = "unique in 12 rows, but numbers are sorted as text: 10 comes before 9"


@pytest.mark.parametrize(
    ("partition_key", "row_key", "partition", "row"),
    [
        ("{c}", "{id}", TWO, SORTED),
        ("{c}", "{n}", TWO, "the keys of an earlier row in 6 of 12 rows"),
        ("{c}", "{c}-{id}", TWO, "unique in 12 rows"),
        ("{c}", "{half}", TWO, "unique within each partition in 12 rows"),
        ("{c}", "{gap}", TWO, "unique in 6 rows, but no value in 6 of 12 rows"),
        ("{id}", "{id}", "each entity is a partition of its own", SORTED),
        (
            "x",
            "{#guid}",
            "all entities are in one partition",
            "unique in 12 rows, but importing the file again makes new entities",
        ),
    ],
)
def test_chosen_keys_are_assessed(partition_key, row_key, partition, row):
    rows = [
        {
            "c": "ab"[n % 2],
            "id": str(n),
            "n": str(n % 6),
            "gap": f"g{n}" if n % 2 else "",
            "half": f"h{n // 2}",
        }
        for n in range(12)
    ]
    expected = f"PartitionKey: {partition}; RowKey: {row}"
    assert assess(partition_key, row_key, KeySample(rows)).reason == expected


def test_a_file_with_keys_or_without_rows_needs_no_proposal():
    assert not propose("PartitionKey,RowKey", lambda n: (n, n)).keys.proposals
    assert not propose("a,b", lambda n: (n, n), 0).keys.proposals


def test_names_with_braces_are_not_proposed():
    assert pairs(propose("a{id},id}", lambda n: (n, n))) == [("all", "{#row}")]


def test_a_refusal_names_the_best_proposal():
    proposal = propose("country,id", lambda n: (f"c{n % 3}", n))
    why = r"PartitionKey \{country\}, RowKey \{id\}. PartitionKey: 3 different values in 175 rows; RowKey: unique"
    with pytest.raises(MappingRefused, match=why):
        proposals.complete(proposal)
    assert proposals.complete(proposal, "{country}", "{id}").row_key == "{id}"

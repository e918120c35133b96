"""CSV of spreadsheets of several countries: encoding, keys and types are proposed as they are."""

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from storage.domain.values.edm import Edm
from storage.editing.input_context import InputContext
from storage.tabular import proposals
from storage.tabular.file import RowFile
from storage.tabular.format_proposals import Certainty
from tests.tabular import spreadsheets

CONTEXT = InputContext(datetime(2026, 11, 28, tzinfo=UTC))


@pytest.mark.parametrize("make", spreadsheets.ALL)
def test_the_first_proposals_for_a_spreadsheet_are_right(make):
    sheet = make()
    file = RowFile(lambda: io.BytesIO(sheet.content))
    assert (file.layout.encoding, file.layout.delimiter) == (sheet.encoding, sheet.delimiter)

    proposal = file.propose(CONTEXT)
    best = proposal.keys.proposals[0]
    assert (best.partition_key, best.row_key) == sheet.keys
    mapping = proposals.complete(proposal, *sheet.keys)

    certain = {
        it.column.source: next(one for one in it.formats if one.certainty is Certainty.CERTAIN)
        for it in proposal.columns
        if it.formats
    }
    readings = {name: f"{it.type.short_name} {it.format}" for name, it in certain.items()}
    assert readings == sheet.readings

    columns = (
        replace(it, type=certain[it.source].type, format=certain[it.source].format)
        if it.source in certain
        else it
        for it in mapping.columns
    )
    [chunk] = file.chunks(replace(mapping, columns=tuple(columns)), CONTEXT)
    assert (chunk.rows, chunk.report.blank_rows, chunk.rejects) == (41, 1, [])
    types = {name: value.type for name, value in chunk.entities[0][1].properties.items()}
    expected = {name: Edm(f"Edm.{it.split()[0]}") for name, it in sheet.readings.items()}
    assert {name: type_ for name, type_ in types.items() if type_ is not Edm.STRING} == expected
    assert chunk.entities[-1][1].key == chunk.entities[4][1].key


def test_names_in_another_spelling_are_keys_only_together():
    def keys(*names):
        text = "\n".join((",".join(names), *(",".join(f"{name}{row}" for name in names) for row in range(3))))
        return proposals.with_likely_keys(RowFile(lambda: io.BytesIO(text.encode())).propose(CONTEXT))

    both = keys("partitionKey", "rowKey", "v")
    assert (both.partition_key, both.row_key) == ("{partitionKey}", "{rowKey}")
    exact = keys("PartitionKey", "RowKey", "partitionKey", "rowkey")
    assert (exact.partition_key, exact.row_key) == ("{PartitionKey}", "{RowKey}")
    assert [it.target for it in exact.columns] == ["partitionKey", "rowkey"]
    mixed = keys("PartitionKey", "row_key", "v")
    assert (mixed.partition_key, mixed.row_key) == ("{PartitionKey}", "{row_key}")

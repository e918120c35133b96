"""Keys of an import as columns and separators are pressed in the form."""

import io
from datetime import UTC, datetime

import pytest
from django.http import QueryDict
from django.utils.http import urlencode

from console.transfer.keys import read_keys
from storage.editing.input_context import InputContext
from storage.tabular.file import RowFile
from storage.tabular.layout import Wishes
from storage.tabular.mapping import MappingRefused


def test_presses_add_columns_and_take_them_out():
    file = RowFile(lambda: io.BytesIO(b"a,b{c,d\n1,2,3\n1,5,6\n"), Wishes())
    proposal = file.propose(InputContext(datetime(2026, 11, 28, tzinfo=UTC)))
    mapping = proposal.mapping

    def press(**sent):
        fields = {"partition_key": mapping.partition_key, "row_key": mapping.row_key, **sent}
        return read_keys(QueryDict(urlencode(fields)), proposal, mapping, None)

    assert (mapping.partition_key, mapping.row_key) == ("", "")
    for sent, expected in (
        ({"toggle": "partition_key:0"}, ("{a}", "")),
        ({"toggle": "row_key:2"}, ("{a}", "{d}")),
        ({"toggle": "row_key:0"}, ("{a}", "{d}-{a}")),
        ({"toggle": "row_key:#row"}, ("{a}", "{d}-{a}-{#row}")),
        ({"toggle": "row_key:0"}, ("{a}", "{d}-{#row}")),
        ({"toggle": "row_key:99"}, ("{a}", "{d}-{#row}")),
        ({"toggle": "table:0"}, ("{a}", "{d}-{#row}")),
        ({"toggle": "row_key:2"}, ("{a}", "{#row}")),
        ({"toggle": "row_key:2"}, ("{a}", "{#row}-{d}")),
        ({"separator:row_key": "{"}, ("{a}", "{#row}{{{d}")),
        ({"separator:row_key": ""}, ("{a}", "{#row}{d}")),
        ({"row_key": "x-{d}"}, ("{a}", "x-{d}")),  # by hand, and then by a column again
        ({"toggle": "row_key:0"}, ("{a}", "x-{d}-{a}")),
        ({"toggle": "row_key:2"}, ("{a}", "x-{a}")),
    ):
        mapping = press(**sent)
        assert (mapping.partition_key, mapping.row_key) == expected, sent
    with pytest.raises(MappingRefused):
        press(row_key="{d", toggle="row_key:0")
    mapping = press(keys="0")
    proposed = proposal.keys.proposals[0]
    assert (mapping.partition_key, mapping.row_key) == (proposed.partition_key, proposed.row_key)

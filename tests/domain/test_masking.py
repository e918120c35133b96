"""Properties that look personal, and the masks proposed for them."""

import pytest

from storage.domain.entities.masking import Mask, propose


@pytest.mark.parametrize(
    ("name", "examples", "mask"),
    [
        ("Email", ["none"], Mask.EMAIL),
        ("Note", ["ada@example.org"], Mask.EMAIL),
        ("Customer", ["Zoë O’Brien", "7"], Mask.NAME),
        ("buyer", ["王小明"], Mask.NAME),
        ("Customer", ["C-10021", "42"], None),  # a number, not a name
        ("City", ["New York"], None),
        ("PartitionKey", ["ada@example.org"], Mask.HASH),
        ("RowKey", ["Ada King"], None),
    ],
)
def test_proposals(name, examples, mask):
    assert propose(name, examples) is mask

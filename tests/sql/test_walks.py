"""In which lane a query runs: by key where the keys say all that it asks."""

import pytest

from storage.domain.filters.access_plan import plan_access
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.sql.statement import Lane
from storage.sql.walks import Binder, walk


@pytest.mark.parametrize(
    ("text", "lane"),
    [
        ("", Lane.KEY),
        ("true", Lane.KEY),
        ("PartitionKey eq 'p'", Lane.KEY),
        ("PartitionKey eq 'p' and RowKey eq 'r'", Lane.KEY),
        ("PartitionKey ge 'p' and PartitionKey lt 'q'", Lane.KEY),
        ("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", Lane.KEY),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", Lane.KEY),
        ("RowKey eq 'r'", Lane.FILTER),
        ("PartitionKey eq 'p' and RowKey ne 'r'", Lane.FILTER),
        ("PartitionKey eq 'p' and RowKey eq 'r' and A eq 1", Lane.FILTER),
        ("PartitionKey eq 'p' or PartitionKey eq 'q'", Lane.FILTER),
        ("A eq 1", Lane.FILTER),
    ],
)
def test_the_lane_of_a_query(text, lane):
    query = EntityQuery(filter=parse(text))

    assert walk(query, Binder()).lane is lane
    assert plan_access(query.filter).is_by_keys is (lane is Lane.KEY)

"""Values that differ from a text only in upper and lower case."""

import json
from typing import Final

from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.encoding import escape, project, unproject
from storage.sql.statement import Lane, Result, Statement, text_at
from storage.sql.walks import Binder

_VALUES: Final = 5

# the letter before a projected value is a small one, so that other types are not equal
_SPELLINGS: Final = """
SELECT value COLLATE "C", count(*) FROM (
    SELECT {value} AS value FROM {relation} WHERE lower({value}) = lower({text}::text) LIMIT {limit}
) AS found GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {values}
"""


def spellings(relation: str, name: str, text: str, *, limit: int) -> Statement[list[str]]:
    """Return the most frequent spellings of a text in a property or key, of the first ``limit`` entities."""
    binder = Binder()
    column = {"PartitionKey": "pk", "RowKey": "rk"}.get(name)
    value = column or f"(props->>{binder.bind(escape(name))}::text)"
    bound = text if column else json.loads(project(EdmValue(Edm.STRING, text)))
    statement = _SPELLINGS.format(
        value=value, relation=relation, text=binder.bind(bound), limit=limit, values=_VALUES
    )

    def read(result: Result) -> list[str]:
        texts = [text_at(result, row, 0) for row in range(result.ntuples)]
        return texts if column else [str(unproject(it).value) for it in texts]

    return binder.statement(statement, Lane.FILTER, read)

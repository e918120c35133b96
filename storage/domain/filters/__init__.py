"""``$filter``: the tree of a condition, its parser and writer, and the key range it has to read.

https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities
"""

from storage.domain.filters.ast import (
    And,
    Comparison,
    Constant,
    Filter,
    IsSet,
    Match,
    MatchKind,
    Not,
    Operator,
    Or,
    all_of,
    conjuncts,
    is_console_only,
    mentioned_properties,
)
from storage.domain.filters.keys import Bound, KeyBounds, KeyInterval, key_range
from storage.domain.filters.parser import Dialect, parse
from storage.domain.filters.query import matches_table
from storage.domain.filters.writer import write

__all__ = [
    "And",
    "Bound",
    "Comparison",
    "Constant",
    "Dialect",
    "Filter",
    "IsSet",
    "KeyBounds",
    "KeyInterval",
    "Match",
    "MatchKind",
    "Not",
    "Operator",
    "Or",
    "all_of",
    "conjuncts",
    "is_console_only",
    "key_range",
    "matches_table",
    "mentioned_properties",
    "parse",
    "write",
]

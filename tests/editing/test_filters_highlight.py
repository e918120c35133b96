"""Syntax highlighting of filters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.editing.filters.highlight import HighlightClass, highlight_filter

PAINTED = [
    ("A eq 1", "property operator number"),
    ("A ge 5L or not (B lt 'x')", "property operator number connective connective mark property operator string mark"),
    ("A eq true and Flag", "property operator constant connective property"),
    ("A eq datetime'2020-01-01'", "property operator typed"),
    ("contains(A,'x') and isset(B)", "function mark property mark string mark connective function mark property mark"),
    ("contains eq 1 and isset", "property operator number connective property"),
    ("eq eq 1 and and eq 1", "property operator number connective property operator number"),
    ("T ge datetime'{{now-24h}}'", "property operator typed place typed"),
    ("A eq 'x {{tenant}}'", "property operator string place string"),
    ("A eq {{size}} and B", "property operator place connective property"),
    ("A = 1", "property unreadable number"),
    ("A eq 'x", "property operator unreadable"),
    ("A eq 5abc", "property operator unreadable"),
    ("A == \"x\" && B", "property unreadable unreadable property unreadable unreadable property"),
    ("A like 'x'", "property unreadable string"),
    ("A AND B", "property unreadable property"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "paints"), PAINTED, ids=[text for text, _ in PAINTED])
def test_paints(text, paints):
    assert " ".join(piece.paint for piece in highlight_filter(text) if piece.paint) == paints


@given(st.text(alphabet="ab \t'()=,:/.-+eELd{}now\u0301\ud800\x00") | st.text())
def test_the_pieces_of_any_text_are_the_text(text):
    result = highlight_filter(text)

    assert "".join(piece.text for piece in result) == text
    assert all(piece.text for piece in result)
    assert all(piece.paint in [None, *HighlightClass] for piece in result)

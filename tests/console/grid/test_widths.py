"""Widths of columns by the number of characters."""

import pytest

from console.grid.cells import absent, draw
from console.grid.widths import fit_content, fit_heading
from storage.domain.values.edm import Edm, EdmValue


@pytest.mark.parametrize(
    ("text", "shown", "all_"),
    [
        ("", 2, 2),
        ("Ada", 3, 3),
        ("<b>&amp;", 8, 8),
        ("Åsa\t", 4, 4),
        ("東京", 4, 4),
        ("x" * 50, 40, 50),
    ],
)
def test_characters(text, shown, all_):
    cells = [draw(EdmValue(Edm.STRING, text)), absent()]
    assert fit_content(cells, Edm.STRING) == (shown * 8 + 25, all_ * 8 + 25)


def test_headings_have_a_mark_a_zone_and_an_arrow():
    narrow = fit_heading("id", "Edm.Guid", "", is_sorted=False)
    assert narrow == 72
    plain = fit_heading("Created", "Edm.DateTime", "", is_sorted=False)
    assert plain < fit_heading("Created", "Edm.DateTime", "", is_sorted=True)
    assert plain < fit_heading("Created", "mix", "", is_sorted=False)
    assert plain < fit_heading("Created", "Edm.DateTime", "UTC", is_sorted=False)

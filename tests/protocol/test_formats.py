"""Pages of entities as they are written."""

import pytest

from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.filters.query import PAGE_BYTES, Page, Position
from storage.domain.values import dialects
from storage.protocol import formats
from storage.protocol.accept import Format
from storage.protocol.formats import write_page
from storage.protocol.json_format import Context

BASE = "http://127.0.0.1:10002/account1"
END = Position("p", "the end")


def key(number):
    """Return a key of the greatest length with characters that take nine in a link each."""
    return EntityKey("寿" * 1024, f"{number:03}" + "寿" * 1021)


def context(form, dialect=dialects.STORAGE):
    return Context(form, BASE, "account1", "t", None, None, dialect)


@pytest.mark.parametrize(
    ("form", "dialect"),
    [
        (Format.ATOM, dialects.STORAGE),
        (Format.JSON_FULL, dialects.STORAGE),
        (Format.JSON_FULL, dialects.COSMOS),
    ],
)
def test_a_page_ends_after_the_entity_that_exceeds_its_size_with_links(form, dialect, monkeypatch):
    monkeypatch.setattr(formats, "PAGE_BYTES", PAGE_BYTES // 8)
    entities = [StoredEntity(encode_entity_key(key(n)), b"638000000000000000", b"") for n in range(40)]
    one, _ = write_page(context(form, dialect), Page(entities[:1], None))

    body, following = write_page(context(form, dialect), Page(entities, END))

    assert formats.PAGE_BYTES < len(body) <= formats.PAGE_BYTES + 2 * len(one)
    assert following is not None and following != END
    written = int(following.row_key[:3])
    assert following == key(written)
    again, end = write_page(context(form, dialect), Page(entities[:written], END))
    assert (len(again), end) == (len(body), END)  # Atom says when it was written


def test_a_page_with_one_entity_is_written_whole():
    entity = StoredEntity(
        encode_entity_key(key(0)), b"638000000000000000", b',"A":"%b"' % (b"x" * PAGE_BYTES)
    )
    body, following = write_page(context(Format.JSON_NONE), Page([entity], END))
    assert len(body) > PAGE_BYTES
    assert following == END

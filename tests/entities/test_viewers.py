"""Viewers of values: exact, bounded, and never as markup or by the type that a value claims."""

import base64
import gzip
import json
import zlib

import pytest

from console.entities.json_tree import MOST
from console.entities.viewers import LIMIT, Viewer, image_type, views
from console.grid.tokens import encode_key
from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import Edm, EdmValue

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ADA = EntityKey("se", "ada")
VALUE = "/ui/a/acme/t/people/value/"


def text(value):
    return EdmValue(Edm.STRING, value)


def binary(value):
    return EdmValue(Edm.BINARY, value)


def part(data):
    return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")


JWT = f"{part({'alg': 'none'})}.{part({'sub': 'ada', 'exp': 1})}."


@pytest.mark.parametrize(
    ("value", "first"),
    [
        (text(""), Viewer.PLAIN),
        (text('{"a": [1]}'), Viewer.JSON),
        (text("[" * 100_000), Viewer.PLAIN),
        (text("a%20b"), Viewer.URL),
        (text("100% %zz"), Viewer.PLAIN),
        (text(base64.b64encode(b"a sentence of words").decode()), Viewer.BASE64),
        (text("abcdefghijklmnop"), Viewer.PLAIN),
        (text(f"Bearer {JWT}"), Viewer.JWT),
        (text("eyJ.eyJ."), Viewer.PLAIN),
        (text(base64.b64encode(PNG).decode()), Viewer.IMAGE),
        (binary(b"\x89PNG but no image"), Viewer.HEX),
        (binary(zlib.compress(b"words")), Viewer.GZIP),
        (binary(gzip.compress(b"words")[:-12]), Viewer.GZIP),
        (binary(b"\x1f\x8b\x00"), Viewer.HEX),
        (binary(b'{"a": 1}'), Viewer.JSON),
        (EdmValue(Edm.DATETIME, 0), Viewer.TIME),
        (EdmValue(Edm.DATETIME, 2_534_023_007_999_999_999), Viewer.PLAIN),
    ],
)
def test_picks_the_most_telling(value, first):
    assert next(iter(views(value))) is first


def test_json_keeps_every_digit_and_every_member():
    [root] = views(text('{"n": 9007199254740993.10, "a b": [true, null], "n": "\\u0000"}'))[Viewer.JSON].nodes
    assert [(node.name, node.path, node.text) for node in root.members] == [
        ("n", "$.n", "9007199254740993.10"),
        ("a b", '$["a b"]', "2"),
        ("n", "$.n", '"\\u0000"'),
    ]


def test_large_and_deep_json_is_cut():
    [wide] = views(text(json.dumps(list(range(MOST * 2)))))[Viewer.JSON].nodes
    assert wide.is_cut and len(wide.members) < MOST
    [deep] = views(text("[" * 100 + "]" * 100))[Viewer.JSON].nodes
    while deep.members:
        [deep] = deep.members
    assert deep.is_cut


def test_a_bomb_unpacks_to_a_bounded_size():
    bomb = gzip.compress(b"0" * (60 * LIMIT))
    assert len(bomb) < 65_536
    view = views(binary(bomb))[Viewer.GZIP]
    assert len(view.text) == LIMIT and view.is_cut


@pytest.mark.parametrize(
    ("data", "type_"),
    [
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVE", None),
        (b"<svg onload=alert(1)>", None),
    ],
)
def test_an_image_is_told_by_its_first_bytes(data, type_):
    assert image_type(data) == type_


def test_claims_of_a_token_are_shown_without_a_verdict(visit, add_entity):
    add_entity(*ADA, Token=JWT)
    shown = visit("victor").get(VALUE, {"pk": "se", "rk": "ada", "name": "Token"}).content.decode()
    assert "has not been verified" in shown and "&quot;ada&quot;" in shown


def test_a_viewer_sees_the_whole_value(visit, add_entity):
    add_entity(*ADA, Long="y" * 32_000)
    answer = visit("victor").get(VALUE, {"key": encode_key(ADA), "property": "Long"})
    assert b"y" * 32_000 in answer.content
    assert b"32,000 bytes" in answer.content
    part = visit("victor").get(
        VALUE, {"key": encode_key(ADA), "property": "Long", "as": "nothing"}, headers={"HX-Request": "true"}
    )
    assert part.status_code == 200 and b"<html" not in part.content


def test_downloads_are_raw_bytes_never_rendered(visit, add_entity):
    add_entity(*ADA, Photo=b"<script>alert(1)</script>", Größe="ü\ud800")
    answer = visit("victor").get(VALUE, {"key": encode_key(ADA), "property": "Photo", "download": "1"})
    assert answer.content == b"<script>alert(1)</script>"
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"] == 'attachment; filename="Photo.bin"'
    other = visit("victor").get(VALUE, {"key": encode_key(ADA), "property": "Größe", "download": "1"})
    assert other["Content-Disposition"].startswith("attachment; filename*=utf-8''")


def test_values_are_never_markup(visit, add_entity):
    hostile = "<img src=x onerror=alert(1)>"
    add_entity(*ADA, A=hostile, B=json.dumps({hostile: hostile}), C="%3Cimg%20src=x%3E")
    for name in "ABC":
        answer = visit("victor").get(VALUE, {"key": encode_key(ADA), "property": name})
        assert b"<img" not in answer.content


def test_missing_values_get_404(visit, add_entity):
    add_entity(*ADA, A=1)
    for query in ("", "key=x", "pk=se", "pk=se&rk=ada&name=None", "pk=&rk=&name=A"):
        assert visit("victor").get(f"{VALUE}?{query}").status_code == 404

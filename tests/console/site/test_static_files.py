"""Static files: kept for good under an address of their content, small on the wire, nothing else of the disk."""

import gzip

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings

from console.site import static_files
from console.site.static_files import StaticFiles

BASE = f"/ui/static/{static_files.version()}/"


async def get(path, *, method="GET", headers=(), development=False):
    scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
    client = ApplicationCommunicator(StaticFiles(development=development), scope)
    await client.send_input({"type": "http.request", "body": b""})
    start = await client.receive_output()
    body = await client.receive_output()
    return start["status"], dict(start["headers"]), body["body"]


async def test_answers_for_good():
    status, headers, body = await get(BASE + "console/main.js")
    assert status == 200
    assert headers[b"content-type"] == b"text/javascript; charset=utf-8"
    assert headers[b"cache-control"] == b"public, max-age=31536000, immutable"
    assert body == (static_files.ROOT / "console" / "main.js").read_bytes()


async def test_compresses():
    accepts = [(b"accept-encoding", b"br, gzip;q=0.5")]
    _, headers, body = await get(BASE + "console/console.css", headers=accepts)
    assert headers[b"content-encoding"] == b"gzip"
    assert headers[b"vary"] == b"accept-encoding"
    assert gzip.decompress(body).startswith(b"@layer tokens,reset,base,components,pages;")


async def test_other_versions_and_methods():
    status, headers, _ = await get("/ui/static/000000000000/console/main.js")
    assert (status, headers[b"cache-control"]) == (200, b"no-cache")
    status, headers, body = await get(BASE + "console/icon.svg", method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers[b"content-length"]) > 0
    assert (await get(BASE + "console/icon.svg", method="POST"))[0] == 405


@pytest.mark.parametrize("development", [False, True])
@pytest.mark.parametrize(
    "path",
    ["/ui/static/", BASE, BASE + "../settings.py", BASE + "console/../../settings.py", BASE + "//etc/passwd",
     BASE + "vendor/vendor.toml", BASE + "console/site/base.css", BASE + "console"],
)  # fmt: skip
async def test_serves_nothing_else(path, development):
    assert (await get(path, development=development))[0] == 404


async def test_development_reads_anew(monkeypatch, tmp_path):
    monkeypatch.setattr(static_files, "ROOT", tmp_path)
    monkeypatch.setattr(static_files, "CONSOLE", tmp_path / "console")
    (tmp_path / "a.js").write_text("1")
    assert (await get("/ui/static/x/a.js", development=True))[2] == b"1"
    (tmp_path / "a.js").write_text("2")
    assert (await get("/ui/static/x/a.js", development=True))[2] == b"2"


def test_address_tells_the_content():
    assert settings.STATIC_URL == BASE

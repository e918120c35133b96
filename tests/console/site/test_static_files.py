"""Static files: kept for good under an address of their content, small on the wire, nothing else of the disk."""

import gzip

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings

from console.site import scripts, static_files
from console.site.static_files import StaticFiles

BASE = f"/ui/static/{static_files.version()}/"


async def get(path, *, method="GET", headers=(), development=False):
    scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
    client = ApplicationCommunicator(StaticFiles(development=development), scope)
    await client.send_input({"type": "http.request", "body": b""})
    start = await client.receive_output(60)
    body = await client.receive_output(60)
    return start["status"], dict(start["headers"]), body["body"]


async def test_answers_for_good():
    name = "vendor/htmx/4.0.1/htmx.min.js"
    status, headers, body = await get(BASE + name)
    assert status == 200
    assert headers[b"content-type"] == b"text/javascript; charset=utf-8"
    assert headers[b"cache-control"] == b"public, max-age=31536000, immutable"
    assert body == (static_files.ROOT / name).read_bytes()


async def test_compresses():
    accepts = [(b"accept-encoding", b"br, gzip;q=0.5")]
    _, headers, body = await get(BASE + "console/console.css", headers=accepts)
    assert headers[b"content-encoding"] == b"gzip"
    assert headers[b"vary"] == b"accept-encoding"
    assert gzip.decompress(body).startswith(b"@layer tokens,reset,base,components,pages;")


SCRIPTS = {
    "console/main.js": 'import { on as hear } from "./site/on.js";\nimport "./site/late.js";\nhear("// no comment");\n',
    "console/site/on.js": "/** Hears\n * it. */\nexport function on(kind) {\n  return kind; // here\n}\n",
    "console/site/late.js": 'import { on } from "./on.js";\nexport const ask = () => import("./form.js");\n',
    "console/site/form.js": (
        'import plot, { type } from "../../vendor/a.js";\nimport {\n  ask,\n} from "./late.js";\n'
        'import "../parts/more.js";\nexport const { soon: askSoon, now } = ask();\nexport async function send() {}\n'
    ),
    "console/parts/more.js": "// nothing\nexport class More {}\n",
}  # fmt: skip


def test_scripts_are_joined():
    def joined(name):
        return scripts.join(name, SCRIPTS.__getitem__)

    assert joined("console/main.js") == (
        "export const modules = {};\n"
        "{\nfunction on(kind) {\nreturn kind; // here\n}\n"
        'modules["console/site/on.js"] = { on };\n}\n'
        '{\nconst { on } = modules["console/site/on.js"];\nconst ask = () => import("./site/form.js");\n'
        'modules["console/site/late.js"] = { ask };\n}\n'
        '{\nconst { on: hear } = modules["console/site/on.js"];\nhear("// no comment");\n'
        'modules["console/main.js"] = {  };\n}\n'
    )
    # a script that is loaded later, with its own imports
    assert joined("console/site/form.js") == (
        'import plot, { type } from "../../vendor/a.js";\nimport { modules } from "../main.js";\n'
        'if (!modules["console/parts/more.js"]) {\nclass More {}\n'
        'modules["console/parts/more.js"] = { More };\n}\n'
        'if (!modules["console/site/form.js"]) {\nconst {\nask,\n} = modules["console/site/late.js"];\n'
        "const { soon: askSoon, now } = ask();\nasync function send() {}\n"
        'modules["console/site/form.js"] = { askSoon, now, send };\n}\n'
        'export const { askSoon, now, send } = modules["console/site/form.js"];\n'
    )
    # one that every page has is only handed on
    assert joined("console/site/on.js") == (
        'import { modules } from "../main.js";\nexport const { on } = modules["console/site/on.js"];\n'
    )


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


async def test_development_reads_files_again(monkeypatch, tmp_path):
    monkeypatch.setattr(static_files, "ROOT", tmp_path)
    monkeypatch.setattr(static_files, "CONSOLE", tmp_path / "console")
    (tmp_path / "a.js").write_text("1")
    assert (await get("/ui/static/x/a.js", development=True))[2] == b"1"
    (tmp_path / "a.js").write_text("2")
    assert (await get("/ui/static/x/a.js", development=True))[2] == b"2"


def test_address_tells_the_content():
    assert settings.STATIC_URL == BASE

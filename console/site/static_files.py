"""Static files of the console, served from memory at addresses that change with their content.

The address holds one hash of the whole tree, so files refer to each other by relative paths as they are: nothing is
collected or stored when a server starts, and every answer may be kept for good. Styles and scripts that a page needs
together are joined. whitenoise would need a thread for every file under ASGI and a manifest made beforehand.
"""

import gzip
import hashlib
import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from console.site import scripts
from storage.core import registry
from storage.core.subject import StyleSheet

ROOT = Path(__file__).parents[2] / "static"
CONSOLE = ROOT / "console"  # one folder per subject
STYLESHEET = f"console/{StyleSheet.COMMON}"
DATA_STYLESHEET = f"console/{StyleSheet.DATA}"
# the sheets of rooms that only some pages need
OTHER_STYLESHEETS = {
    "grid": DATA_STYLESHEET,
    **{
        subject.name: f"console/{subject.style_sheet}"
        for subject in registry.subjects()
        if subject.style_sheet != StyleSheet.COMMON
    },
}
PREFIX = "/ui/static/"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".rules": "application/speculationrules+json",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
COMPRESSED = {".css", ".js", ".svg"}
FOREVER = b"public, max-age=31536000, immutable"

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class File:
    """Served file, built from its sources on first request."""

    def __init__(self, name: str, paths: list[Path]) -> None:
        self._name = name
        self._paths = paths

    @property
    def type(self) -> str:
        return TYPES[Path(self._name).suffix]

    @cached_property
    def content(self) -> bytes:
        return _read(self._name, self._paths, cache(_text))

    @cached_property
    def compressed(self) -> bytes | None:
        # mtime, so that all workers answer with the same bytes
        is_text = Path(self._name).suffix in COMPRESSED
        return gzip.compress(self.content, 9, mtime=0) if is_text else None


def _found() -> list[Path]:
    """Return all source files, without licences, the vendor list, and files of left-out subjects."""
    missing = {CONSOLE / name for name in registry.left_out()}
    return [
        path for path in sorted(ROOT.rglob("*")) if path.suffix in TYPES and missing.isdisjoint(path.parents)
    ]


def sources() -> dict[str, list[Path]]:
    """Return the source files by served name; style sheets join many, base.css first."""
    paths = _found()
    sources = {path.relative_to(ROOT).as_posix(): [path] for path in paths if not _is_style(path)}
    sources |= {sheet: [] for sheet in (STYLESHEET, *OTHER_STYLESHEETS.values())}
    for path in filter(_is_style, paths):
        sheet = OTHER_STYLESHEETS.get(path.relative_to(CONSOLE).parts[0], STYLESHEET)
        sources[sheet].insert(0 if path.name == "base.css" else len(paths), path)
    return sources


def _is_style(path: Path) -> bool:
    return path.suffix == ".css" and CONSOLE in path.parents


def _text(name: str) -> str:
    """Read a script, adding imports of modules from other subjects."""
    text = (ROOT / name).read_text()
    here = posixpath.dirname(name)
    added = (f"console/{it}" for it in registry.scripts(name.removeprefix("console/")))
    return text + "".join(f'import "{scripts.relative(it, here)}";\n' for it in added)


def _read(name: str, paths: list[Path], text: scripts.Read) -> bytes:
    """Return the content of a served name; ``text`` reads a script by name."""
    if name.startswith("console/") and name.endswith(".js"):
        return scripts.join(name, text).encode()
    content = b"".join(path.read_bytes() for path in paths)
    return _minified(content) if not paths or _is_style(paths[0]) else content


def _minified(style: bytes) -> bytes:
    """Minify CSS by removing comments and whitespace."""
    style = re.sub(rb"/\*.*?\*/", b"", style, flags=re.DOTALL)
    return re.sub(rb"\s*([{};,])\s*|(?<=[\w-])(:)\s+", rb"\1\2", style)


@cache
def version() -> str:
    """Return a hash of all files and of the bundling code."""
    digest = hashlib.sha256()
    code = [Path(__file__), Path(scripts.__file__)]
    for path in [*_found(), *code]:
        name = path.name if path in code else path.relative_to(ROOT).as_posix()
        content = _text(name).encode() if path.suffix == ".js" else path.read_bytes()
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()[:12]


@cache
def files() -> Mapping[str, File]:
    """Return the served files by name."""
    return {name: File(name, paths) for name, paths in sources().items()}


class StaticFiles:
    """ASGI application for static files; reads from disk each time in development."""

    def __init__(self, *, development: bool) -> None:
        self._development = development

    async def __call__(self, scope: Scope, receive: object, send: Send) -> None:
        tree, _, name = scope["path"].removeprefix(PREFIX).partition("/")
        file = self._find(name)
        if file is None:
            await _answer(send, 404, b"", [])
        elif scope["method"] not in {"GET", "HEAD"}:
            await _answer(send, 405, b"", [(b"allow", b"GET, HEAD")])
        else:
            headers = [
                (b"content-type", file.type.encode()),
                # pages loaded before an update still get their files, but these are not cached
                (b"cache-control", FOREVER if tree == version() and not self._development else b"no-cache"),
                (b"x-content-type-options", b"nosniff"),
                (b"cross-origin-resource-policy", b"same-origin"),
            ]
            body = file.content
            if file.compressed is not None:
                headers.append((b"vary", b"accept-encoding"))
                if _accepts_gzip(scope):
                    headers.append((b"content-encoding", b"gzip"))
                    body = file.compressed
            await _answer(send, 200, body, headers, with_body=scope["method"] == "GET")

    def _find(self, name: str) -> File | None:
        if not self._development:
            return files().get(name)
        paths = sources().get(name)
        return None if paths is None else File(name, paths)


def _accepts_gzip(scope: Scope) -> bool:
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding")
    return any(coding.partition(b";")[0].strip().lower() == b"gzip" for coding in accepted.split(b","))


async def _answer(
    send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]], *, with_body: bool = True
) -> None:
    headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body if with_body else b""})

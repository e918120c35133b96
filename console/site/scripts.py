"""Bundling of the console's JavaScript modules into two scripts per page.

The file of a module is served with all of its imports, except those of ``main.js``, which every page loads:
each module is a block in it, after its imports, and its exports are kept in ``modules`` by its name. So a
module runs once, whichever files it came with. Its ``import`` and ``export`` begin lines, it imports nothing
that imports it, and no exported name is assigned again. A file in ``vendor`` stays a file of its own.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

MAIN: Final = "console/main.js"
_VENDOR: Final = "vendor/"
_IMPORT: Final = re.compile(r'^import (?:([\w, ]*\{[^}]*\}|\w+) from )?"(\.[^"]+)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\{[^}]*\}|\w+))", re.MULTILINE)
_LATER: Final = re.compile(r'\bimport\("(\.[^"]+)"\)')
# comments on whole lines: inside a line, it may be a text
_COMMENT: Final = re.compile(r"^\s*(?://[^\n]*|/\*\*.*?\*/)\n", re.MULTILINE | re.DOTALL)
_INDENT: Final = re.compile(r"^\s+", re.MULTILINE)

Read = Callable[[str], str]
"""The text of a script by its name."""


def join(name: str, read: Read) -> str:
    """Return the bundled file of a module."""
    common = list(_ordered(MAIN, read))
    own = common if name == MAIN else [it for it in _ordered(name, read) if it not in common]
    here = posixpath.dirname(name)
    vendored = [_vendored(it, here, read) for it in own]
    if name == MAIN:
        return "".join(
            [*vendored, "export const modules = {};\n", *(_block(it, here, read(it)) for it in own)]
        )
    blocks = (f'if (!modules["{it}"]) {_block(it, here, read(it))}' for it in own)
    exported = f'export const {{ {", ".join(_exports(read(name)))} }} = modules["{name}"];\n'
    return "".join([*vendored, f'import {{ modules }} from "{relative(MAIN, here)}";\n', *blocks, exported])


def _ordered(name: str, read: Read, seen: set[str] | None = None) -> Iterator[str]:
    """Yield a module after its imports, each once, in execution order."""
    seen = set() if seen is None else seen
    if name in seen or name.startswith(_VENDOR):
        return
    seen.add(name)
    for _names, imported in _imports(read(name)):
        yield from _ordered(_resolve(imported, name), read, seen)
    yield name


@lru_cache(1024)
def _imports(text: str) -> list[tuple[str, str]]:
    """Return the names and address of each import."""
    return _IMPORT.findall(text)


@lru_cache(1024)
def _block(name: str, here: str, text: str) -> str:
    content = _IMPORT.sub(lambda match: _taken(match, name), text)
    content = _EXPORT.sub("", content)
    content = _LATER.sub(lambda match: f'import("{relative(_resolve(match[1], name), here)}")', content)
    content = _INDENT.sub("", _COMMENT.sub("", content))
    return f'{{\n{content}modules["{name}"] = {{ {", ".join(_exports(text))} }};\n}}\n'


def _taken(match: re.Match[str], name: str) -> str:
    """Return the replacement of an import, reading names from an executed module."""
    names, imported = match[1], _resolve(match[2], name)
    if imported.startswith(_VENDOR) or names is None:
        return ""
    return f'const {names.replace(" as ", ": ")} = modules["{imported}"];\n'


def _vendored(name: str, here: str, read: Read) -> str:
    """Return the imports of vendored modules, which are kept."""
    imports = ((names, _resolve(address, name)) for names, address in _imports(read(name)))
    return "".join(
        f'import {names} from "{relative(it, here)}";\n' for names, it in imports if it.startswith(_VENDOR)
    )


def _exports(text: str) -> list[str]:
    names: list[str] = []
    for match in _EXPORT.finditer(text):
        # the names that a pattern gives: { soon: checkSoon, now }
        parts = match[1].strip("{} ").split(",")
        names += [part.partition(":")[2].strip() or part.strip() for part in parts]
    return names


def _resolve(address: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), address))


def relative(name: str, here: str) -> str:
    found = posixpath.relpath(name, here)
    return found if found.startswith(".") else f"./{found}"

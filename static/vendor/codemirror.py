#!/usr/bin/env python3
"""Bundle CodeMirror anew: static/vendor/codemirror.py FOLDER, an empty one to work in; needs npm.

codemirror.json beside this file names the packages and the bundler, codemirror-lock.json all they need with their
hashes, so that the same bundle comes out everywhere. Afterwards vendor.toml wants its hash.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

VENDOR = Path(__file__).parent
EXPORTS = {
    "@codemirror/autocomplete": ("acceptCompletion", "autocompletion", "closeCompletion"),
    "@codemirror/commands": ("defaultKeymap", "history", "historyKeymap"),
    "@codemirror/language": ("HighlightStyle", "StreamLanguage", "bracketMatching", "syntaxHighlighting"),
    "@codemirror/lint": ("nextDiagnostic", "setDiagnostics"),
    "@codemirror/state": ("Annotation", "EditorState", "Prec"),
    "@codemirror/view": ("EditorView", "keymap", "placeholder"),
    "@lezer/highlight": ("tags",),
}
OPTIONS = (
    "--bundle",
    "--format=esm",
    "--minify",
    "--target=es2022",
    "--charset=utf8",
    "--legal-comments=none",
)


def main() -> None:
    folder = Path(sys.argv[1])
    shutil.copy(VENDOR / "codemirror.json", folder / "package.json")
    shutil.copy(VENDOR / "codemirror-lock.json", folder / "package-lock.json")
    # no scripts: the bundler comes as a program of its own
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True)
    (folder / "entry.js").write_text(
        "".join(f'export {{ {", ".join(names)} }} from "{package}";\n' for package, names in EXPORTS.items())
    )
    target = VENDOR / "codemirror" / version(folder)
    target.mkdir(parents=True, exist_ok=True)
    bundler = next((folder / "node_modules" / "@esbuild").glob("*/bin/esbuild"))
    subprocess.run(
        [bundler, "entry.js", *OPTIONS, f"--outfile={target.resolve() / 'codemirror.js'}"],
        cwd=folder,
        check=True,
    )
    (target / "LICENSE").write_text(licences(folder))


def version(folder: Path) -> str:
    package = json.loads((folder / "package.json").read_text())
    return str(package["dependencies"]["@codemirror/view"])


def licences(folder: Path) -> str:
    """Every text once, under the packages that have it."""
    packages: dict[str, list[str]] = {}
    root = folder / "node_modules"
    for path in sorted([*root.glob("*/LICENSE"), *root.glob("@*/*/LICENSE")]):
        packages.setdefault(path.read_text().strip(), []).append(path.parent.relative_to(root).as_posix())
    return "\n\n".join(f"{', '.join(names)}:\n\n{text}" for text, names in packages.items()) + "\n"


if __name__ == "__main__":
    main()

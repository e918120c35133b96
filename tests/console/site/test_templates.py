"""Templates and scripts keep to what the content security policy allows, and to what exists."""

import re
from graphlib import TopologicalSorter

from console.site import static_files, tags
from tests.live_server import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static" / "console").rglob("*.js"))
STYLES = sorted((ROOT / "static" / "console").rglob("*.css"))
FORBIDDEN = {
    "a style attribute": r"<[^>]*\sstyle\s*=",
    "a style element": r"<style\b",
    "an inline script": r"<script(?![^>]*\bsrc=)[^>]*>",
    "a handler": r"<[^>]*\son[a-z]+\s*=",
    "code in htmx": r"hx-on\b|hx-(?:vals|confirm|headers)[^=]*=\s*['\"](?:js|javascript):",
    "a trigger filter, which is evaluated": r"hx-trigger\s*=\s*['\"][^'\"]*\[",
    "another origin": r"(?:src|href|action)\s*=\s*['\"](?:https?:)?//",
    "a javascript: address": r"['\"]\s*javascript:",
}


def test_templates_keep_to_the_policy():
    for path in TEMPLATES:
        text = re.sub(r"{% comment %}.*?{% endcomment %}", "", path.read_text(), flags=re.DOTALL)
        # template tags are not markup
        text = re.sub(r"{%.*?%}|{{.*?}}", "", text, flags=re.DOTALL)
        results = [what for what, pattern in FORBIDDEN.items() if re.search(pattern, text, re.IGNORECASE)]
        assert results == [], path


EVALUATION = r"\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write"


def test_scripts_and_styles_keep_to_the_rules():
    assert [path for path in SCRIPTS if re.search(EVALUATION, path.read_text())] == []
    assert [script.name for script in SCRIPTS if "fetch(" in script.read_text()] == ["request.js"]
    # in Turkish i becomes İ, and names of properties would lie
    assert [path for path in STYLES if "text-transform" in path.read_text()] == []


def test_icons_are_those_that_are_used():
    text = "".join(path.read_text() for path in TEMPLATES)
    used = set(re.findall(r"{% icon \"([a-z0-9-]+)\"", text))
    used |= set(re.findall(r"icon=\"([a-z0-9-]+)\"", text)) | set(
        re.findall(r"icon\|default:\"([^\"]+)\"", text)
    )
    listed = (ROOT / "static" / "vendor" / "icons.txt").read_text().split()
    sources = [*(ROOT / "console").rglob("*.py"), *(ROOT / "storage").glob("*/subject.py")]
    code = "".join(path.read_text() for path in sources)
    used |= set(re.findall(r"\"([a-z0-9-]+)\"", code)) & set(listed)
    [sprite] = (ROOT / "static" / "vendor" / "lucide").glob("*/sprite.svg")
    assert used == set(listed)
    assert re.findall(r'<symbol id="([^"]+)"', sprite.read_text()) == listed


def test_icons_are_drawn_in_the_page():
    for name in (ROOT / "static" / "vendor" / "icons.txt").read_text().split():
        [drawing] = re.findall(r"<svg [^>]*>(.+)</svg>", tags.icon(name))
        assert re.fullmatch(r"(<(path|circle|rect|line|polyline|polygon|ellipse) [^>]*/>)+", drawing), name


IMPORT = re.compile(r'(?:from |import |import\()"(\.[^"]+)"')
ORDER = [
    "site",
    "help",
    "people",
    "grid",
    "queries",
    "entities",
    "bulk_edit",
    "comments",
    "links",
    "presence",
    "access",
    "accounts",
    "tables",
    "history",
    "transfer",
    "notices",
    "activity",
    "metrics",
    "notices",
    "compare",
    "home",
]


def imports(script):
    return [(script.parent / name).resolve() for name in IMPORT.findall(script.read_text())]


def test_scripts_import_what_exists():
    assert all(found.is_file() for script in SCRIPTS for found in imports(script))


def test_scripts_import_no_subject_above_theirs():
    """Scripts keep the order of the console's packages; main.js and data.js gather them."""
    for script in SCRIPTS:
        if script.parent.name != "console":
            above = ORDER[ORDER.index(script.parent.name) + 1 :]
            assert [imported for imported in imports(script) if imported.parent.name in above] == [], script


def test_scripts_import_in_no_circle():
    before = {script: imports(script) for script in SCRIPTS}
    list(TopologicalSorter(before).static_order())


def test_scripts_can_be_joined():
    """The rules of console.site.scripts hold: the parts that it leaves out, and names that it takes once."""
    for script in SCRIPTS:
        text = script.read_text()
        assert (
            re.search(r"^export (?:let|var|default|\{|\*)|^import \*|\bimport\.meta", text, re.MULTILINE)
            is None
        )
        assert [it for it in re.findall(r"`[^`]*`", text) if "\n" in it] == [], (
            script
        )  # its lines are not indented


def test_weight_of_every_page():
    files = static_files.files()
    scripts = ["console/main.js", *(name for name in files if name.endswith("htmx.min.js"))]
    assert sum(len(files[name].compressed) for name in scripts) < 30_000
    assert len(files["console/data.js"].compressed) < 40_500
    assert len(files[static_files.STYLESHEET].compressed) < 12.5 * 1024
    fonts = sum(
        len(file.content) for name, file in files.items() if name.endswith(("-latin.woff2", "-turkish.woff2"))
    )
    assert fonts < 60_000


def test_dates_are_written_by_one_owner():
    """All but the hour on an axis: ISO dates in the reader's zone, by the filters of console/site/times.py."""
    allowed = {"c", "U", "H:i", "m-d H:i"}
    for template in TEMPLATES:
        formats = re.findall(r"""\|(?:date|time)\b(?::["']([^"']*)["'])?""", template.read_text())
        assert set(formats) <= allowed, template

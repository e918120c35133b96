"""Docstrings, comments and documents are in plain English, and the linter finds what is not."""

import pytest

from tests.prose import linter

PATTERNS = pytest.mark.parametrize("pattern", linter.patterns(), ids=lambda pattern: pattern.name)


def test_all_prose_is_plain():
    findings = [
        f"{finding.path}:{finding.line}: {finding.name}: {finding.text}" for finding in linter.all_findings()
    ]
    assert findings == []


@PATTERNS
def test_pattern_finds_its_example_and_leaves_the_plain_one(pattern):
    assert pattern.regex.search(pattern.finds)
    assert not pattern.regex.search(pattern.leaves)


@PATTERNS
def test_plain_examples_have_no_other_phrase_either(pattern):
    others = [other for other in linter.patterns() if pattern.kinds == other.kinds]
    assert [other.name for other in others if other.regex.search(pattern.leaves)] == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.py", '"""A module.\n\nIt is written all the same."""', 1),
        ("a.py", 'x = 1\nclass A:\n    """A lock that nobody holds."""\n', 3),
        ("a.py", 'def f():\n    """Return the names of what was deleted."""\n', 2),
        ("a.py", "x = 1\ny = 2  # made anew\n", 2),
        ("a.py", "x = 1\n# It is written\n# all the same\n", 2),
        ("a.js", "let x;\n// nobody asked\n", 2),
        ("a.css", "/* for ever */", 1),
        ("a.md", "# Tables\n\nIt tells\nof tables.\n", 3),
        ("a.md", "| a | b |\n|---|---|\n| c | It is written all the same. |\n", 3),
    ],
)
def test_finds_phrases_in_prose_of_each_language(name, text, line):
    assert [finding.line for finding in linter.phrases(name, text)] == [line]


def test_shows_a_phrase_with_the_words_around_it():
    [finding] = linter.phrases("a.md", f"{'Long. ' * 100}It is written all the same. {'Long. ' * 100}")
    assert "It is written all the same." in finding.text and len(finding.text) < 150


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", 'user = "nobody"'),
        ("a.js", 'const user = "nobody"; const site = "https://nobody.example";'),
        ("a.md", "Run as `nobody`.\n\n```console\n$ su nobody\n```\n"),
    ],
)
def test_leaves_values_and_code_alone(name, text):
    assert list(linter.phrases(name, text)) == []


def test_fields_are_described_behind_themselves_and_not_in_the_class():
    text = '"""A request. ``started``: when it came."""'
    names = [f.name for f in linter.phrases("a.py", f"class A:\n    {text}\n")]
    assert "field-in-class" in names
    assert "field-in-class" not in [f.name for f in linter.phrases("a.py", f"def f():\n    {text}\n")]


def test_finds_vague_names_in_long_functions_only():
    body = "    found = list(rows)\n" + "    rows.append(1)\n" * 4
    assert [f.line for f in linter.vague_names("a.py", f"def f(rows):\n{body}")] == [1]
    assert [f.text for f in linter.vague_names("a.py", f"def f(wanted):\n{body}")] == ["f", "f"]
    assert list(linter.vague_names("a.py", "def f(rows):\n    found = list(rows)\n    return found\n")) == []

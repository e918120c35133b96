"""The architecture is short, and its code map is that of the registry and the import contracts."""

from tests import code_map

MOST_WORDS = 600  # above the code map, which grows with each subject


def test_the_code_map_is_current():
    text = code_map.DOCUMENT.read_text("utf-8")
    assert text == code_map.insert(text), "run: python3 -m tests.code_map"


def test_the_architecture_is_short():
    words = len(code_map.DOCUMENT.read_text("utf-8").partition("## Code map\n")[0].split())
    assert words <= MOST_WORDS, (
        f"docs/architecture.md has {words} words: shorten it, or write a document of the subject"
    )

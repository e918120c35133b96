"""Search of the documentation."""

import pytest

from console.help import contents, documents, search


def addresses(text):
    return [f"{match.place.name}#{match.place.anchor}".removesuffix("#") for match in search.find(text)]


def excerpt(text):
    return "".join(f"[{part.text}]" if part.is_match else part.text for part in search.find(text)[0].excerpt)


@pytest.fixture
def document(monkeypatch, tmp_path):
    """Return `document(text)`, which is the only document then."""

    def document(text):
        search.sections.cache_clear()
        (tmp_path / "design.md").write_text(text, encoding="utf-8")
        monkeypatch.setattr(documents, "ROOT", tmp_path)
        entry = contents.entries()["design"]
        monkeypatch.setattr(contents, "entries", lambda: {"design": entry})

    yield document
    search.sections.cache_clear()


def test_titles_come_first_then_headings_phrases_and_words(document):
    document(
        "# Table design\n\nOf keys that are long.\n\n## Words\n\nA key. It is long.\n\nlong\n\nkeys\n\n"
        "## Phrase\n\nThe long keys.\n\n## Apart\n\nKeys.\n\nAnd long.\n\n## Long keys\n\nNothing.\n"
    )
    assert addresses("long keys") == [
        "design#long-keys",
        "design#phrase",
        "design",
        "design#words",
        "design#apart",
    ]
    assert addresses("Table design")[0] == "design"


def test_words_are_found_at_their_beginning_and_without_diacritics(document):
    document("# Table design\n\nA catalog of Gümüş.\n\n## Dates\n\nThe header x-ms-date.\n")
    assert addresses("log") == []
    assert addresses("cat gumus") == ["design"]
    assert excerpt("GUMUS") == "A catalog of [Gümüş]."
    assert excerpt("ms-date") == "The header x-[ms-date]."
    assert addresses("") == addresses(" ") == []


def test_markup_is_left_out_and_code_is_found(document):
    document(
        "# Table design\n\nSee [the *keys*](keys.md) of `a_b`.\n\n## Code\n\n```sh\n# pads keys\npad(x)\n```\n\n"
        "| name | value |\n|---|---|\n| one | first |\n"
    )
    assert excerpt("see") == "[See] the keys of a_b."
    assert excerpt("pads") == "# [pads] keys"
    assert excerpt("first") == "one · [first]"
    assert addresses("md") == []


def test_long_passages_are_cut_at_words(document):
    document(f"# Table design\n\n{'before ' * 60}match {'after ' * 60}\n")
    found = excerpt("match")
    assert found.startswith("… before ") and found.endswith("after …") and " [match] " in found
    assert len(found) < 300


def test_all_documents_are_searched():
    for name in contents.entries():
        assert [it for it in search.sections(name) if it.heading] != []
        assert {it.heading.anchor for it in search.sections(name) if it.heading} == {
            it.anchor for it in documents.sections(name)
        }

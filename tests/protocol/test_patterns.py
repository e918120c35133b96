"""Patterns of entities: what they recognize is what reading and encoding value by value finds, on every input."""

import json

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from storage.domain.entities import patterns, plans
from storage.domain.entities.entity import write_fragments
from storage.domain.entities.members import read_values
from storage.domain.values import dialects
from storage.domain.values.kinds import AccountKind
from storage.protocol.json_format import read_entity, read_new_entity, read_object
from tests.examples import of_usual
from tests.protocol.test_plans import jsons, members

KINDS = st.sampled_from(list(AccountKind))
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")])
USUAL = {
    "PartitionKey": "p",
    "PartitionKey@odata.type": "Edm.String",
    "RowKey": "r",
    "odata.etag": "W/\"datetime'x'\"",
    "Text": 'a "quoted" \\ \n text',
    "Flag": True,
    "Number": 5,
    "Share": 1.5,
    "Small@odata.type": "Edm.Int32",
    "Small": -7,
    "Large": "-12345678901",
    "Large@odata.type": "Edm.Int64",
    "Double": 2.25,
    "Double@odata.type": "Edm.Double",
    "Time": "2024-02-29T12:13:14.5600Z",
    "Time@odata.type": "Edm.DateTime",
    "Id": "0d4b3c2e-8c1f-4f53-a9cd-0123456789ab",
    "Id@odata.type": "Edm.Guid",
    "Bytes": "AAECAw==",
    "Bytes@odata.type": "Edm.Binary",
}


@pytest.fixture(autouse=True)
def no_patterns():
    for kept in patterns._patterns.values():
        kept.clear()


def learn(members, kind=AccountKind.STORAGE):
    encoded = plans.encode(members, kind)
    if encoded is None:
        return False
    patterns.learn(members, tuple(encoded), kind)
    return True


def check(text, kind):
    """Compare the result of the pattern with the general parser's."""
    result = patterns.recognize(text.encode(errors="surrogatepass"), kind)
    if result is None:
        return None
    general = read_object(text.encode())
    expected = read_values(general, kind)
    assert result.fragments == write_fragments(expected, kind)
    assert list(result) == list(expected)
    assert repr(dict(result)) == repr(expected)
    keys = general.get("PartitionKey"), general.get("RowKey")
    assert result.key == (keys if None not in keys else None)
    return result


@settings(max_examples=of_usual(50))
@given(members(), st.data(), KINDS, SEPARATORS)
def test_patterns_agree_with_the_general_parser(found, data, kind, separators):
    assume(learn(found, kind))
    for name in data.draw(st.sets(st.sampled_from(sorted(found))) if found else st.just([])):
        found[name] = data.draw(jsons)
    check(json.dumps(found, ensure_ascii=data.draw(st.booleans()), separators=separators), kind)


@pytest.mark.parametrize("kind", AccountKind)
@settings(max_examples=of_usual(40))
@given(data=st.data(), separators=st.sampled_from([(",", ":"), (", ", ": ")]))
def test_usual_values_of_all_types_are_recognized(kind, data, separators):
    assert learn(USUAL, kind)
    results = dict(USUAL)
    results["Text"] = data.draw(
        st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="\\"))
    )
    results["Number"] = data.draw(st.integers(-999_999_999, 999_999_999) | st.just(0.5))
    results["Large"] = str(data.draw(st.integers(-(10**18) + 1, 10**18 - 1)))
    results["Time"] = data.draw(
        st.datetimes().filter(lambda at: at.year > 1600).map(lambda at: f"{at.isoformat()}Z")
    )
    results["Bytes"] = data.draw(st.sampled_from(["AA==", "AAA=", "AAAA", "+/+/"]))
    assert check(json.dumps(results, separators=separators), kind) is not None


@given(st.text(), st.sampled_from(sorted(USUAL)))
@example("x" * patterns.LONGEST, "Text")
@example("é", "Text")
@example("2023-02-29T00:00:00Z", "Time")
@example("1600-12-31T23:59:59Z", "Time")
@example("9223372036854775807", "Large")
@example("0D4B3C2E-8C1F-4F53-A9CD-0123456789AB", "Id")
@example("AAB=", "Bytes")
@example("AAAA=", "Bytes")
@example("AAAA==", "Bytes")
def test_unusual_values_are_left_to_the_general_way(value, name):
    assert learn(USUAL)
    check(json.dumps({**USUAL, name: value}), AccountKind.STORAGE)


@pytest.mark.parametrize(
    "change",
    [
        ('"Number": 5', '"Number": 5, "Number": 5'),
        ('"Number": 5', '"Number": -0'),
        ('"Number": 5', '"Number": 05'),
        ('"Number": 5', '"Number": 2147483648'),
        ('"Number": 5', '"Number": 5.'),
        ('"Number": 5', '"Number": 1e2'),
        ('"Share": 1.5', '"Share": 1.50'),
        ('"Share": 1.5', '"Share": 0.0'),
        ('"Share": 1.5', '"Share": 0.00001'),
        ('"Flag": true', '"Flag": "true"'),
        ('"Flag": true', '"Flag": null'),
        ('"Text": ', '"text": '),
        ('"PartitionKey": "p"', '"PartitionKey": "p\\n"'),
        ('"PartitionKey": "p"', '"PartitionKey": 5'),
        ("Edm.Guid", "Edm.String"),
        ("}", "} "),
        ("}", ""),
        ("}", ',"X": 1}'),
    ],
)
def test_another_text_is_not_recognized(change):
    assert learn(USUAL)
    text = json.dumps(USUAL)
    assert check(text, AccountKind.STORAGE) is not None
    assert change[0] in text
    assert check(text.replace(*change), AccountKind.STORAGE) is None


def test_a_plan_becomes_a_pattern_after_many_uses():
    text = json.dumps(USUAL).encode()
    uses = next(
        n for n in range(1000) if patterns.recognize(text, AccountKind.STORAGE) or not plans.encode(USUAL)
    )
    assert 10 < uses < 1000


def test_keys_are_found_wherever_they_are():
    results = {"A": "a", "RowKey": "r", "B": 1, "PartitionKey": "p", "C": 2}
    assert learn(results)
    recognized = check(json.dumps(results), AccountKind.STORAGE)
    assert recognized.key == ("p", "r")
    entity = read_new_entity(recognized, dialects.STORAGE)
    assert entity.key == ("p", "r")
    assert read_entity(recognized, ("q", "s"), dialects.STORAGE).key == ("q", "s")


@pytest.mark.parametrize("found", [{"A": 1}, {"PartitionKey": "p", "A": 1}, {}])
def test_an_entity_without_keys_is_recognized_as_such(found):
    learn(found)
    recognized = check(json.dumps(found), AccountKind.STORAGE)
    assert recognized is None or recognized.key is None


def test_the_patterns_that_are_kept_have_a_limit():
    for number in range(100):
        for names in range(1, 5):
            learn({f"P{number}_{at}": 1 for at in range(names)})
    assert sum(map(len, patterns._patterns[AccountKind.STORAGE].values())) <= 4 * 4

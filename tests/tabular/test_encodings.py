"""The encoding of a text: decided by marks, structure and language, with its alternatives where it is a guess."""

import codecs
from collections import Counter

import pytest

from storage.tabular import encoding_guess, encodings
from storage.tabular.encoding_guess import Evidence, compare, language_of_zone
from storage.tabular.encodings import ENCODINGS, find, of_mark, of_zeros
from tests.tabular.encoding_corpus import files, guess, is_read_rightly

SHORT = 8  # one in so many short files is read
FEWEST = 0.93  # least share of short files that are read correctly


def read(content, language=""):
    return content.decode(encodings.codec_of(guess(content, language).encoding), "replace")


def test_files_of_people_are_read_rightly():
    chosen = [it for it in files() if it.number % SHORT == 0]
    wrong = [it for it in chosen if not is_read_rightly(it)]
    assert [it for it in wrong if it.length != "short"] == []
    total = Counter(it.length for it in chosen)["short"]
    assert total > 150 and len(wrong) < (1 - FEWEST) * total, [it[:4] for it in wrong]
    assert len({it.encoding for it in chosen}) >= 25


def test_wrong_guesses_are_never_sure():
    chosen = [it for it in files() if it.length == "short" and it.number % SHORT == 1]
    sure = [it for it in chosen if guess(it.content).is_sure and not is_read_rightly(it)]
    assert sure == []


@pytest.mark.parametrize(
    "text", ["Müller", "café", "Zürich", "5 €", "20 °C", "“quoted”", "don’t", "año", "Ærø", "É"]
)
def test_a_single_word_is_western_unless_something_speaks_against_it(text):
    content = f"id,name\n1,{text}\n".encode("cp1252")
    assert read(content).split(",")[-1] == f"{text}\n" and not guess(content).is_sure


def test_the_language_of_the_reader_decides_between_what_is_as_probable():
    content = "id;il\r\n1;İZMİR\r\n".encode("cp1254")
    assert guess(content).encoding != "windows-1254" and not guess(content).is_sure
    assert guess(content, "tr").encoding == "windows-1254"
    french = "id;nom\r\n1;Hélène Lefèvre\r\n2;crème brûlée\r\n3;déjà réglé\r\n"
    languages = ("", "en-US", "fr", "tr", "pl", "ru", "el", "lt", "ja", "zh-TW", "xx")
    assert {read(french.encode("cp1252"), it) for it in languages} == {french}


def test_some_time_zones_tell_a_language():
    assert [language_of_zone(it) for it in ("Europe/Istanbul", "Asia/Taipei", "Europe/Berlin", "x")] == [
        "tr",
        "zh-hant",
        "",
        "",
    ]
    big5 = "id\r\n臺\r\n".encode("cp950")
    assert guess(big5, "zh-TW").encoding == guess(big5, "zh-hant").encoding == "big5"


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
)
@pytest.mark.parametrize("text", ["id,ad\n1,İstanbul\n", "id\n東京都\n大阪市\n", "id,a\n1,b\n"])
def test_unicode_with_and_without_a_mark(codec, text):
    content = text.encode(codec)
    name = of_mark(content) or of_zeros(content) or guess(content).encoding
    assert content.decode(encodings.codec_of(name)) == text and find(codec) == name


def test_zeros_alone_are_not_utf16():
    emojis = b"id,name\n1,a\0b\n" + "\N{GRINNING FACE}".encode() * 100
    for content in (b"id,name\n1,a\0b\n", bytes(range(256)) * 9, b"\0" * 100, emojis, emojis[:-1]):
        assert of_zeros(content) == ""


def test_utf8_with_few_wrong_bytes_is_utf8():
    for good, bad in ((1, 1), (40, 3)):
        content = b"pk,v\n" + "a,é\n".encode() * good + b"a,bad \xe9\n" * bad
        result = guess(content)
        assert (result.encoding, result.is_sure) == ("utf-8", good > 10 * bad)
        assert result.readings[0].encoding == "utf-8"
        windows = next(it for it in result.readings if it.encoding == "windows-1252")
        assert set(windows.samples) == {"Ã©", "bad é"}
    # text in another encoding with a few pairs that could be UTF-8
    assert guess("v\nÃ©\nLefèvre\ncrème\nréglé\n".encode("cp1252")).encoding == "windows-1252"


def test_the_end_of_a_piece_may_be_cut_off():
    content = "v\n" + "İstanbul, 東京\n" * 100
    for cut in range(1, 4):
        evidence = Evidence()
        evidence.add(content.encode()[: -1 - cut], is_cut=True)
        assert evidence.is_utf8 and evidence.runs[0] == 0
    for number in range(1, 3):
        evidence = Evidence()
        evidence.add("東京都新宿区".encode("cp932")[:-number] * 300, is_cut=True)
        assert encoding_guess.guess(evidence).encoding


def test_readings_differ_in_their_samples():
    result = guess("id;name\r\n1;Lefèvre\r\n2;Köln\r\n3;déjà payé\r\n4;plain\r\n".encode("cp1252"))
    assert result.readings[0].encoding == result.encoding == "windows-1252"
    assert 1 < len(result.readings) <= 5
    assert all(len(it.samples) == len(result.readings[0].samples) <= 3 for it in result.readings)
    assert len({it.samples for it in result.readings}) == len(result.readings)
    assert "Lefèvre" in result.readings[0].samples


def test_samples_of_long_texts_show_where_they_differ():
    result = guess(("x" * 300 + " café brûlé " + "y" * 300).encode("cp1252"))
    assert all("café" in it.samples[0] and len(it.samples[0]) < 60 for it in result.readings[:1])


def test_there_is_nothing_to_guess_in_ascii_and_utf8():
    for content in (b"id,name\n1,a\n", "id,name\n1,ş\n".encode()):
        assert (guess(content).encoding, guess(content).readings) == ("utf-8", ())


def test_a_chosen_encoding_is_compared_with_the_others():
    evidence = Evidence()
    evidence.add("id;name\r\n1;Łódź\r\n2;Kraków\r\n".encode("cp1250"))
    readings = compare(evidence, "windows-1252")
    assert readings[0].encoding == "windows-1252" and "windows-1250" in {it.encoding for it in readings}
    assert len({it.encoding for it in readings}) == len(readings)


def test_evidence_is_bounded_and_has_each_byte():
    evidence = Evidence()
    content = "".join(f"Москва {number}\n" for number in range(100_000)) + "5 Ї\n"
    evidence.add(content.encode("cp1251"))
    assert sum(map(len, evidence.fields)) < 40_000
    assert any("Ї".encode("cp1251") in it for it in evidence.fields)
    evidence = Evidence()
    evidence.add(b"\xe9" * 1_000_000)
    assert sum(map(len, evidence.fields)) < 1000


def test_long_texts_without_an_end_take_no_longer_than_others():
    for filling in (b"x", b" ", b"\xe9", "東".encode("cp932"), "é".encode(), b"\xe9x"):
        evidence = Evidence()
        evidence.add(b"a" * 200_000 + filling * 100_000 + "é".encode("cp1252"))
        assert encoding_guess.guess(evidence).encoding


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("latin-1", "windows-1252"), ("Latin1", "windows-1252"), ("ISO_8859-1", "windows-1252"),
        ("cp1252", "windows-1252"), ("Windows-1254", "windows-1254"), ("UTF8", "utf-8"), ("utf_8_sig", "utf-8"),
        ("ascii", "utf-8"), ("utf-16-le", "utf-16le"), ("UTF-16", "utf-16"), ("sjis", "shift_jis"),
        ("Shift-JIS", "shift_jis"), ("cp932", "shift_jis"), ("GBK", "gb18030"), ("gb2312", "gb18030"),
        ("cp936", "gb18030"), ("big5", "big5"), ("cp950", "big5"), ("euc_kr", "euc-kr"), ("cp949", "euc-kr"),
        ("uhc", "euc-kr"), ("EUC-JP", "euc-jp"), ("iso-8859-9", "iso-8859-9"), ("latin5", "iso-8859-9"),
        ("cp850", "ibm850"), ("IBM437", "ibm437"), ("mac-roman", "macintosh"), ("koi8-r", "koi8-r"),
        ("tis-620", "windows-874"),
    ],
)  # fmt: skip
def test_usual_names(name, expected):
    assert find(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "punycode",
        "hz",
        "iso2022_jp",
        "iso-2022-kr",
        "unicode_escape",
        "raw_unicode_escape",
        "idna",
        "rot13",
        "zlib",
    ]
    + ["base64", "utf-7", "cp037", "cp500", "undefined", "charmap", "mbcs", "klingon", "", "../x", "é" * 40],
)
def test_other_codecs_are_not_offered(name):
    assert find(name) is None


def test_every_encoding_decodes_any_bytes_without_an_exception():
    sample = bytes(range(256)) * 4
    for name, codec in ENCODINGS.items():
        assert codecs.lookup(codec) and find(name) == name and find(codec) == name
        assert isinstance(encodings.decode_beginning(sample, encodings.with_order(name, sample)), str)

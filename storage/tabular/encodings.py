"""Encodings of text files, by name and by byte order mark."""

import codecs
import re
from collections.abc import Mapping
from encodings.aliases import aliases
from functools import cache
from typing import Final

# by the names of the WHATWG and IANA, with Python's codec: where a name means two, the one that Windows writes
ENCODINGS: Final[Mapping[str, str]] = {
    "utf-8": "utf_8",
    "utf-16": "utf_16",  # with a mark
    "utf-16le": "utf_16_le",
    "utf-16be": "utf_16_be",
    "utf-32": "utf_32",
    "utf-32le": "utf_32_le",
    "utf-32be": "utf_32_be",
    "windows-1252": "cp1252",
    "iso-8859-15": "iso8859_15",
    "iso-8859-14": "iso8859_14",
    "ibm437": "cp437",
    "ibm850": "cp850",
    "ibm858": "cp858",
    "ibm860": "cp860",
    "ibm861": "cp861",
    "ibm863": "cp863",
    "ibm865": "cp865",
    "macintosh": "mac_roman",
    "windows-1250": "cp1250",
    "iso-8859-2": "iso8859_2",
    "iso-8859-16": "iso8859_16",
    "ibm852": "cp852",
    "x-mac-ce": "mac_latin2",
    "windows-1254": "cp1254",
    "iso-8859-9": "iso8859_9",
    "iso-8859-3": "iso8859_3",
    "ibm857": "cp857",
    "x-mac-turkish": "mac_turkish",
    "windows-1251": "cp1251",
    "koi8-r": "koi8_r",
    "koi8-u": "koi8_u",
    "iso-8859-5": "iso8859_5",
    "ibm855": "cp855",
    "ibm866": "cp866",
    "x-mac-cyrillic": "mac_cyrillic",
    "windows-1253": "cp1253",
    "iso-8859-7": "iso8859_7",
    "ibm737": "cp737",
    "ibm869": "cp869",
    "x-mac-greek": "mac_greek",
    "windows-1257": "cp1257",
    "iso-8859-4": "iso8859_4",
    "iso-8859-10": "iso8859_10",
    "iso-8859-13": "iso8859_13",
    "ibm775": "cp775",
    "windows-1255": "cp1255",
    "iso-8859-8": "iso8859_8",
    "ibm862": "cp862",
    "windows-1256": "cp1256",
    "iso-8859-6": "iso8859_6",
    "ibm864": "cp864",
    "windows-1258": "cp1258",
    "windows-874": "cp874",
    "shift_jis": "cp932",
    "euc-jp": "euc_jis_2004",  # with the characters of NEC, such as the one of a company
    "gb18030": "gb18030",
    "big5": "cp950",
    "big5-hkscs": "big5hkscs",
    "euc-kr": "cp949",
}
# aliases of other codecs; the browsers read Latin-1 as Windows-1252, too
_SAME: Final = {
    "ascii": "utf_8",
    "latin_1": "cp1252",
    "iso8859_1": "cp1252",
    "utf_8_sig": "utf_8",
    "iso8859_11": "cp874",
    "tis_620": "cp874",
    "shift_jis": "cp932",
    "shift_jisx0213": "cp932",
    "shift_jis_2004": "cp932",
    "euc_jp": "euc_jis_2004",
    "euc_jisx0213": "euc_jis_2004",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "cp950",
    "euc_kr": "cp949",
    "mac_centeuro": "mac_latin2",
}
_OTHER_NAMES: Final = {
    "ansi": "windows-1252",
    "unicode": "utf-16",
    "sjis": "shift_jis",
    "windows_31j": "shift_jis",
    "windows_949": "euc-kr",
    "windows_936": "gb18030",
    "cp936": "gb18030",
    "x_sjis": "shift_jis",
    "x_gbk": "gb18030",
    "mac": "macintosh",
    "x_mac_roman": "macintosh",
    "x_mac_latin2": "x-mac-ce",
    "dos_862": "ibm862",
    "koi8": "koi8-r",
    "koi": "koi8-r",
}


def _normalized(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


@cache
def _names() -> Mapping[str, str]:
    """Return the encodings by all their names."""
    of_codecs = {codec: name for name, codec in ENCODINGS.items()}
    names = {alias: of_codecs.get(_SAME.get(codec, codec)) for alias, codec in aliases.items()}
    names |= {codec: of_codecs[same] for codec, same in _SAME.items()}
    names |= of_codecs
    names |= {_normalized(name): name for name in ENCODINGS}
    names |= _OTHER_NAMES
    return {_normalized(alias): name for alias, name in names.items() if name is not None}


def find(name: str) -> str | None:
    """Return the canonical encoding for a name in any common spelling, such as latin-1, cp1252 or UTF8, or None."""
    return _names().get(_normalized(name))


def codec_of(name: str) -> str:
    """Return Python's codec; a job of an older version may have an unlisted encoding."""
    return ENCODINGS.get(name, name)


def with_order(name: str, sample: bytes) -> str:
    """Add the byte order to UTF-16 or UTF-32 if the text has no byte order mark."""
    if name not in ("utf-16", "utf-32") or of_mark(sample) == name:
        return name
    encoding = of_zeros(sample)
    return encoding if encoding.startswith(name) else f"{name}le"


def decode_beginning(sample: bytes, name: str) -> str:
    """Decode the beginning of a text, ignoring a truncated last character; invalid bytes become U+FFFD."""
    return codecs.getincrementaldecoder(codec_of(name))("replace").decode(sample)


def errors_of(name: str) -> str:
    """Return Python's error handler for an encoding, which lets lone surrogates pass in UTF encodings."""
    return "surrogatepass" if name.startswith("utf") else "strict"


def is_of_bytes(name: str) -> bool:
    """Return whether lines can be split before decoding, because the bytes of a line end are unambiguous."""
    return not name.startswith(("utf-16", "utf-32"))


# without statistics

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
_NOT_IN_TEXT: Final = re.compile("[\x00-\x08\x0e-\x1f\ufffe\uffff]")


def of_mark(sample: bytes) -> str:
    """Return the encoding of a byte order mark at the beginning, or an empty string."""
    return next((name for mark, name in _MARKS if sample.startswith(mark)), "")


def of_zeros(sample: bytes) -> str:
    """Detect UTF-16 or UTF-32 without a byte order mark; empty for other encodings.

    Delimiters and line ends contain zero bytes in any language; their position gives the byte order.
    """
    zeros, beyond = sample.count(0), sum(map(sample.count, range(0x80, 0x100)))
    if not zeros or (zeros < len(sample) / 4 and (beyond < len(sample) / 10 or _begins_as_utf8(sample))):
        return ""  # text of bytes, with some zeros
    best, most = "", 0
    for name in ("utf-32le", "utf-32be", "utf-16le", "utf-16be"):
        size = 4 if "32" in name else 2
        whole = sample[: len(sample) // size * size]
        try:
            text = codecs.getincrementaldecoder(codec_of(name))("strict").decode(whole)
        except UnicodeDecodeError:
            continue
        plain = sum(map(text.count, '\n\r,;\t" 0123456789aeinorst'))
        if plain > most and not _NOT_IN_TEXT.search(text):
            best, most = name, plain
    return best


def _begins_as_utf8(sample: bytes) -> bool:
    """Return whether a beginning, whose last character may be cut, is UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")("surrogatepass").decode(sample)
    except UnicodeDecodeError:
        return False
    return True

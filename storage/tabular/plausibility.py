"""Implausible spots of a text, which indicate a wrong encoding."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final

from storage.tabular.letters import (
    ALPHABETS,
    COMMON,
    FREQUENT,
    HAN_OF,
    OF_TWO_BYTES,
    RARE_LANGUAGES,
)

_SPACES: Final = re.compile(r"\s+")
_AROUND: Final = re.compile(r"^\W+|\W+$")
_ORDINALS: Final = "ªº"
_NO_LETTERS: Final = "ªºµ"  # though Unicode calls them so

_WORDS: Final = 2.0  # factor of the costs of words
_FREQUENT_WORD: Final = 1.2  # bonus of a frequent word
_MOST_FREQUENT: Final = 4  # that save it
_FOREIGN_LETTER: Final = 1.2
_AMID_LETTERS: Final = 1.5
_BESIDE_LETTER: Final = 1.0

_USUAL_SYMBOLS: Final = frozenset("€£¥°©®™§±×÷−½¼¾²³µ…–—«»„“”‘’¿¡•·‰†™№\xa0　、。，")
_OPENING: Final = frozenset("«“„‘‚‹¿¡")
_CLOSING: Final = frozenset("»”“’‘›…‰%®™©")
_CURRENCIES: Final = frozenset("€£¥")
_UNUSED: Final = frozenset("¤¦¨´¸¬¯ˇ˘˙˚˛˝ˆ˜ƒ")
_EASTERN: Final = frozenset(
    ("CJK", "HIRAGANA", "KATAKANA", "FULLWIDTH", "HALFWIDTH", "IDEOGRAPHIC", "HANGUL")
)
_NOT_FIRST: Final = frozenset("ьъыЬЪЫةى")
_LAST_ONLY: Final = frozenset("ςךםןףץة")
_NOT_LAST: Final = frozenset("σ")
_THAI_PREFIXES: Final = frozenset("เแโใไ")  # vowels, written before their consonant
_RARE_THAI: Final = frozenset("ฃฅฆฌฎฏฐฑฒฬฮฯ๏๚๛")


def cost(texts: Sequence[str], encoding: str) -> float:
    """Return the implausibility of texts decoded in an encoding; 0 for plausible ones."""
    words = {word for text in texts for word in _SPACES.split(text) if not word.isascii()}
    total = _WORDS * sum(map(_cost_of_word, words))
    if all(len(word) == 1 for word in words):
        total += _WORDS * sum(map(_is_of_another_script, words))
    total += sum(("«" in text) != ("»" in text) for text in texts)
    frequent = FREQUENT & {_bare(word) for word in words if len(word) > 1}
    total -= _FREQUENT_WORD * min(_MOST_FREQUENT, len(frequent))
    if encoding in OF_TWO_BYTES:
        return total + sum(_rarity(it, encoding) for word in words for it in word if it > "\x7f")
    return total + _cost_of_letters(words, encoding)


def _bare(word: str) -> str:
    """Return a word in lower case, without surrounding punctuation."""
    return _AROUND.sub("", word).lower().replace("i\u0307", "i")


@lru_cache(4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").partition(" ")[0].partition("-")[0]


def _is_of_another_script(letter: str) -> bool:
    return letter.isalpha() and _script(letter) not in _EASTERN | {"LATIN"}


def _cost_of_word(word: str) -> float:
    total = _cost_of_scripts({_script(it) for it in word if it.isalpha() and it not in _NO_LETTERS})
    if len(word) == 1:
        total += _cost_of_single_letter(word)
    before = " "
    for place, character in enumerate(word):
        after = word[place + 1] if place + 1 < len(word) else " "
        if character > "\x7f":
            total += _cost_of_character(character, before, after)
        elif character.isupper() and before > "\x7f" and before.islower():
            total += 1.0
        before = character
    return total


def _cost_of_scripts(scripts: Collection[str]) -> float:
    """Return the cost of mixing scripts in a word."""
    if len(scripts) < 2:
        return 0.0
    others = set(scripts) - _EASTERN
    is_eastern = len(others) < len(scripts) and others <= {"LATIN"} and scripts != {"LATIN", "HALFWIDTH"}
    if not is_eastern:
        return 1.0
    return 0.7 if others else 0.0


def _cost_of_single_letter(letter: str) -> float:
    if not letter.isalpha() or letter.lower() in FREQUENT:
        return 0.0
    script = _script(letter)
    if script in _EASTERN and script != "HALFWIDTH":
        return 0.0
    return 0.6 if script == "LATIN" else 1.5


def _cost_of_character(character: str, before: str, after: str) -> float:
    category = unicodedata.category(character)
    if character in _UNUSED:
        return _AMID_LETTERS
    if character in _ORDINALS:
        return _AMID_LETTERS if after.isalpha() else 0.0 if before in ".0123456789" else 1.0
    if category[0] == "L":
        return _cost_of_letter(character, before, after)
    if category in ("Cc", "Cn", "Co", "Cs"):
        return 3.0
    if category[0] == "M":
        is_with_its_letter = _script(character) == "COMBINING" or _script(before) == _script(character)
        return 0.0 if is_with_its_letter else 1.0
    if "\u2500" <= character < "\u25a0":  # characters that draw boxes
        return _AMID_LETTERS
    return _cost_of_symbol(character, category, before, after)


def _cost_of_letter(letter: str, before: str, after: str) -> float:
    total = 0.0
    if letter.isupper():
        total += 1.0 if before.islower() else 0.3 * (before.isupper() and after.islower())
    is_first, is_last = not before.isalpha(), not after.isalpha()
    is_misplaced = (
        (letter in _NOT_FIRST and is_first)
        or (letter in _LAST_ONLY and not is_last)
        or (letter in _NOT_LAST and is_last and not is_first)
        or (letter in _THAI_PREFIXES and not "\u0e01" <= after < "\u0e2f")
    )
    return total + 1.0 * is_misplaced + 0.3 * (letter in _RARE_THAI)


def _cost_of_symbol(symbol: str, category: str, before: str, after: str) -> float:
    is_after, is_before = before.isalpha(), after.isalpha()  # a letter
    is_amid = is_after and is_before
    match symbol, category:
        case ("’" | "·" | "‐", _):
            return 0.0 if is_after or is_before else 0.2
        case ("°", _) if not is_after:
            return 0.1
        case (_, "Cf"):
            return 0.5 if is_amid else _AMID_LETTERS
        case (_, "Zs"):
            return 0.5 * is_amid
        case ("–" | "—", _):
            return 0.3 * is_amid
        case ("²" | "³", _) if before in "m0123456789)":
            return 0.1
    if is_amid:
        return _AMID_LETTERS
    if (symbol in _OPENING and is_before) or (symbol in _CLOSING and is_after):
        return 0.0
    if is_after or is_before:
        return 0.0 if symbol in _CURRENCIES else _BESIDE_LETTER
    return 0.1 if symbol in _USUAL_SYMBOLS else 1.0


def _cost_of_letters(words: Iterable[str], encoding: str) -> float:
    """Return the cost of letters unknown to the best-fitting language."""
    alphabets = ALPHABETS.get(encoding)
    if alphabets is None:
        return 0.0
    letters = Counter(
        letter
        for word in words
        for letter in unicodedata.normalize("NFC", word).lower()
        if letter > "\x7f" and letter.isalpha() and letter not in _NO_LETTERS
    )
    total = letters.total()
    return min(
        _FOREIGN_LETTER * (total - sum(map(letters.__getitem__, alphabet)))
        + RARE_LANGUAGES.get(alphabet, 0.0)
        for alphabet in alphabets
    )


# codecs whose first level has what is used, and the first byte after it
_LEVELS: Final = {"gb18030": ("gb2312", 0xD8), "big5": ("big5", 0xC9), "shift_jis": ("euc_jp", 0xD0)}


@lru_cache(16384)
def _rarity(character: str, encoding: str) -> float:
    """Return the cost of a rare character in a two-byte encoding."""
    encoding = HAN_OF.get(encoding, encoding)
    if character in COMMON[encoding]:
        return 0.0
    if "\u3040" <= character < "\u3100":  # Kana
        return -0.3 if encoding == "shift_jis" else 1.0
    if "\uff61" <= character <= "\uff9f":  # characters of half width
        return 0.5
    if "\uac00" <= character < "\ud7a4":  # Hangul
        return (0.3 if _first_byte(character, "euc_kr") else 1.0) if encoding == "euc-kr" else 1.0
    if "\u4e00" <= character < "\ua000":
        return _rarity_of_han(character, encoding)
    if character > "\uffff" or "\ue000" <= character < "\uf900":
        return 1.0
    return 0.3 if character.isalpha() else 0.1


def _rarity_of_han(character: str, encoding: str) -> float:
    if encoding == "euc-kr":
        return 0.8
    codec, end = _LEVELS[encoding]
    first = _first_byte(character, codec)
    return 1.0 if first is None else 0.4 if first < end else 0.8


def _first_byte(character: str, codec: str) -> int | None:
    try:
        return character.encode(codec)[0]
    except UnicodeEncodeError:
        return None

"""Encoding detection of text without a byte order mark that is not UTF-8, with alternatives."""

import codecs
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from storage.tabular import plausibility
from storage.tabular.encodings import ENCODINGS, codec_of, find

# the evidence

_FIELD: Final = re.compile(rb"[^\x00-\x1f\",;]+")
_RUN: Final = re.compile(rb"[\x80-\xff]+")
_BELOW_TRAILS: Final = re.compile(
    rb".*[\x20-\x3f]", re.DOTALL
)  # no second byte of a character is one of these
_MOST_RUNS: Final = 20_000  # that are looked at
_LONGEST: Final = 600  # bytes of a field
_ENOUGH: Final = 16 * 1024  # bytes of all fields
_FEW: Final = 4  # bytes, with which a guess is never sure
_TIMES: Final = 4  # that a byte has to be seen before fields are left out


@dataclass(slots=True)
class Evidence:
    """Fields of a file with non-ASCII bytes, enough to judge the encoding by."""

    fields: dict[bytes, bool] = field(default_factory=dict)  # whether the end was cut off
    runs: list[int] = field(default_factory=lambda: [0, 0])  # not UTF-8, UTF-8
    _size: int = 0
    _seen: list[int] = field(default_factory=lambda: [0] * 256)

    @property
    def is_utf8(self) -> bool:
        """Return whether most of it is UTF-8, which other encodings rarely are by chance."""
        bad, good = self.runs
        return good >= bad

    @property
    def is_enough(self) -> bool:
        return self._size >= _ENOUGH or (self.runs[0] == 0 and self.runs[1] > 0)

    @property
    def number(self) -> int:
        """Return the number of non-ASCII bytes."""
        return sum(byte > 0x7F for text in self.fields for byte in text) or 1

    def without_utf8(self) -> "Evidence":
        """Return the fields that are not UTF-8."""
        return Evidence(
            {text: is_cut for text, is_cut in self.fields.items() if not _is_utf8(text)}, self.runs
        )

    def add(self, piece: bytes, *, is_cut: bool = False) -> None:
        """Add a piece of a file; ``is_cut`` tells that its last field may be truncated."""
        if piece.isascii():
            return
        for match in _FIELD.finditer(piece):
            if match[0].isascii():
                continue
            text, is_last = match[0].strip(), is_cut and match.end() == len(piece)
            for run in _RUN.finditer(text) if sum(self.runs) < _MOST_RUNS else ():
                if not (is_last and run.end() == len(text)):
                    self.runs[_is_utf8(run[0])] += 1
            if text not in self.fields:
                self._add_field(text, is_cut=is_last)

    def _add_field(self, text: bytes, *, is_cut: bool) -> None:
        if len(text) > _LONGEST:
            shorter = _BELOW_TRAILS.match(text, 0, _LONGEST)
            text, is_cut = (text[: shorter.end()], False) if shorter else (text[:_LONGEST], True)
        fresh = {byte for byte in text if byte > 0x7F and self._seen[byte] < _TIMES}
        if self._size < _ENOUGH or fresh:
            self.fields[text] = is_cut
            self._size += len(text)
            for byte in set(text):
                self._seen[byte] += 1


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


# a decision


@dataclass(frozen=True, slots=True)
class Reading:
    """Encoding with sample texts of the file decoded in it."""

    encoding: str
    samples: tuple[str, ...] = ()

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> Self:
        """Load from the JSON of ``dataclasses.asdict``."""
        return cls(found["encoding"], tuple(found["samples"]))


@dataclass(frozen=True, slots=True)
class Guess:
    """Most probable encoding, whether it ``is_sure``, and the ``readings`` that differ, beginning with its own.

    Without readings the encoding was unambiguous.
    """

    encoding: str
    is_sure: bool = True
    readings: tuple[Reading, ...] = ()


# how usual each is, in files of people; those that are not here are never guessed
_USUAL: Final[Mapping[str, float]] = {
    "windows-1252": 1.0,
    "windows-1250": 0.7,
    "windows-1251": 0.8,
    "windows-1253": 0.8,
    "windows-1254": 0.8,
    "windows-1255": 0.8,
    "windows-1256": 0.8,
    "windows-1257": 0.5,
    "windows-874": 0.5,
    "iso-8859-15": 0.7,
    "iso-8859-2": 0.6,
    "iso-8859-5": 0.3,
    "iso-8859-7": 0.6,
    "iso-8859-9": 0.55,
    "iso-8859-13": 0.4,
    "koi8-r": 0.5,
    "koi8-u": 0.45,
    "ibm437": 0.25,
    "ibm850": 0.4,
    "ibm852": 0.35,
    "ibm857": 0.35,
    "ibm865": 0.3,
    "ibm866": 0.5,
    "macintosh": 0.4,
    "x-mac-cyrillic": 0.3,
    "shift_jis": 0.8,
    "euc-jp": 0.6,
    "gb18030": 0.8,
    "big5": 0.8,
    "euc-kr": 0.8,
}
_CYRILLIC: Final = ("windows-1251", "koi8-r", "koi8-u", "ibm866", "iso-8859-5", "x-mac-cyrillic")
_CENTRAL: Final = ("windows-1250", "iso-8859-2", "ibm852")
_BY_LANGUAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "ar": ("windows-1256",),
    "az": ("windows-1254", "iso-8859-9", "ibm857"),
    **dict.fromkeys(("be", "bg", "kk", "mk", "ru", "uk"), _CYRILLIC),
    **dict.fromkeys(("bs", "cs", "hr", "hu", "pl", "ro", "sk", "sl", "sq"), _CENTRAL),
    "el": ("windows-1253", "iso-8859-7"),
    "en": (),  # the language of browsers of people of every language
    **dict.fromkeys(("et", "lt", "lv"), ("windows-1257", "iso-8859-13")),
    "he": ("windows-1255",),
    "ja": ("shift_jis", "euc-jp"),
    "ko": ("euc-kr",),
    "sr": (*_CYRILLIC, *_CENTRAL),
    "th": ("windows-874",),
    "tr": ("windows-1254", "iso-8859-9", "ibm857"),
    "zh": ("gb18030",),
    "zh-hant": ("big5",),
}
_TRADITIONAL: Final = re.compile("zh-(hant|tw|hk|mo)")
_ZONES: Final = {
    **dict.fromkeys(("Europe/Istanbul", "Asia/Istanbul", "Turkey"), "tr"),
    "Europe/Warsaw": "pl",
    "Poland": "pl",
    "Europe/Prague": "cs",
    "Europe/Bratislava": "sk",
    "Europe/Budapest": "hu",
    "Europe/Bucharest": "ro",
    "Europe/Zagreb": "hr",
    "Europe/Ljubljana": "sl",
    "Europe/Sarajevo": "bs",
    "Europe/Tirane": "sq",
    "Europe/Belgrade": "sr",
    "Europe/Skopje": "mk",
    "Europe/Sofia": "bg",
    "Europe/Minsk": "be",
    "Europe/Kiev": "uk",
    "Europe/Kyiv": "uk",
    **dict.fromkeys(("Europe/Moscow", "Europe/Samara", "Europe/Kaliningrad", "Europe/Volgograd"), "ru"),
    **dict.fromkeys(("Asia/Yekaterinburg", "Asia/Omsk", "Asia/Novosibirsk", "Asia/Krasnoyarsk"), "ru"),
    **dict.fromkeys(("Asia/Irkutsk", "Asia/Vladivostok", "Asia/Almaty"), "ru"),
    "Europe/Athens": "el",
    "Asia/Nicosia": "el",
    "Europe/Vilnius": "lt",
    "Europe/Riga": "lv",
    "Europe/Tallinn": "et",
    "Asia/Baku": "az",
    "Asia/Bangkok": "th",
    "Asia/Tokyo": "ja",
    "Japan": "ja",
    "Asia/Seoul": "ko",
    "ROK": "ko",
    "Asia/Shanghai": "zh",
    "PRC": "zh",
    "Asia/Urumqi": "zh",
    **dict.fromkeys(("Asia/Taipei", "ROC", "Asia/Hong_Kong", "Hongkong", "Asia/Macau"), "zh-hant"),
    **dict.fromkeys(("Asia/Jerusalem", "Asia/Tel_Aviv", "Israel"), "he"),
    **dict.fromkeys(("Africa/Cairo", "Egypt", "Asia/Riyadh", "Asia/Baghdad", "Asia/Dubai"), "ar"),
    **dict.fromkeys(("Asia/Amman", "Asia/Beirut", "Asia/Damascus", "Asia/Kuwait", "Africa/Tripoli"), "ar"),
}
_WESTERN: Final = ("windows-1252", "iso-8859-15", "ibm850", "ibm437", "ibm865", "macintosh")
_PRIOR: Final = 0.7
_LITTLE: Final = 1.0  # bytes for which that counts twice
_LOCAL: Final = 1.0  # for the encodings of the language of those who import
_NO_MATCH: Final = "ascii"  # chardet's answer if it finds none
_UNKNOWN: Final = 0.004  # the confidence of encodings that chardet leaves out
_SURE: Final = 2.5  # by how much more than the next one
_LIKELY: Final = 12.0  # costlier encodings are not offered
_OFFERED: Final = 5


class _Candidate(NamedTuple):
    score: float
    encoding: str
    texts: tuple[str, ...]


def guess(evidence: Evidence, language: str = "") -> Guess:
    """Guess the encoding of a text without a byte order mark; ``language`` is the importing user's, such as tr."""
    if not evidence.fields:
        return Guess("utf-8")
    bad, good = evidence.runs
    if evidence.is_utf8 and not bad:
        return Guess("utf-8")
    if evidence.is_utf8:
        return Guess("utf-8", good > 10 * bad, compare(evidence, "utf-8", language))
    candidates = _rank(evidence, language)
    if not candidates:
        return Guess("windows-1252", is_sure=False)
    is_clear = len(candidates) == 1 or candidates[0].score - candidates[1].score > _SURE
    is_sure = is_clear and evidence.number >= _FEW
    return Guess(candidates[0].encoding, is_sure, _compare(candidates[:_OFFERED]))


def compare(evidence: Evidence, chosen: str, language: str = "") -> tuple[Reading, ...]:
    """Return the readings of a text, beginning with the chosen encoding."""
    if not evidence.fields or (evidence.is_utf8 and not evidence.runs[0]):
        return ()
    first = _Candidate(math.inf, chosen, _decode_all(evidence, chosen))
    # the parts in UTF-8 tell nothing about the rest
    judged = evidence.without_utf8() if evidence.is_utf8 else evidence
    others = [it._replace(texts=_decode_all(evidence, it.encoding)) for it in _rank(judged, language)]
    return _compare([first, *(it for it in others if it.texts != first.texts)][:_OFFERED])


def _decode_all(evidence: Evidence, name: str) -> tuple[str, ...]:
    return tuple(text.decode(codec_of(name), "replace") for text in evidence.fields)


def _rank(evidence: Evidence, language: str) -> list[_Candidate]:
    """Rank the possible encodings, most probable first; among equal decodings, the most common encoding."""
    confidences = _statistics(evidence)
    local = _encodings_of(language)
    # habits count for more where there is little evidence
    weight = 1 + _LITTLE / evidence.number
    by_text: dict[tuple[str, ...], list[tuple[float, str]]] = {}
    scores: dict[tuple[str, ...], float] = {}
    for name, usual in _USUAL.items():
        texts = _decode(evidence, name)
        if texts is not None:
            prior = weight * (_PRIOR * math.log(usual) + _LOCAL * (name in local))
            score = prior + confidences.get(name, math.log(_UNKNOWN)) - plausibility.cost(texts, name)
            scores[texts] = max(scores.get(texts, -math.inf), score)
            by_text.setdefault(texts, []).append((prior, name))
    candidates = [_Candidate(score, max(by_text[texts])[1], texts) for texts, score in scores.items()]
    candidates.sort(key=lambda it: -it.score)
    return [it for it in candidates if it.score > candidates[0].score - _LIKELY]


def _encodings_of(language: str) -> tuple[str, ...]:
    """Return the common encodings for a language such as pt-BR; none for an empty one."""
    tag = language.lower().replace("_", "-")
    name = "zh-hant" if _TRADITIONAL.match(tag) else tag.partition("-")[0]
    return _BY_LANGUAGE.get(name, _WESTERN if name else ())


def language_of_zone(zone: str) -> str:
    """Return the main language of a time zone if it has typical encodings, otherwise an empty string."""
    return _ZONES.get(zone, "")


def _decode(evidence: Evidence, name: str) -> tuple[str, ...] | None:
    """Decode the fields; None if one is invalid in this encoding."""
    texts = []
    decoder: Any = codecs.getincrementaldecoder(codec_of(name))
    try:
        for text, is_cut in evidence.fields.items():
            texts.append(decoder("strict").decode(text, not is_cut))
    except UnicodeDecodeError:
        return None
    return tuple(texts)


def _statistics(evidence: Evidence) -> Mapping[str, float]:
    """Return the logarithms of chardet's confidences, weighed by the amount of evidence."""
    import chardet  # rarely needed, and large

    whole = [text for text, is_cut in evidence.fields.items() if not is_cut] or list(evidence.fields)
    codecs_ = [*(ENCODINGS[name] for name in _USUAL), _NO_MATCH]
    detected = chardet.detect_all(
        b"\n".join(whole),
        ignore_threshold=True,
        compat_names=False,
        include_encodings=codecs_,
        no_match_encoding=_NO_MATCH,
    )
    weight = math.sqrt(min(len(whole), 20))
    known = {find(str(it["encoding"])): max(it["confidence"], 1e-5) for it in detected}
    highest = max(known.values(), default=1.0)
    return {
        name: math.log(value) + (weight - 1) * math.log(value / highest)
        for name, value in known.items()
        if name is not None
    }


_SAMPLES: Final = 3
_SHOWN: Final = 48  # characters


def _compare(candidates: Sequence[_Candidate]) -> tuple[Reading, ...]:
    """Return differing sample texts of each candidate, without candidates that differ only elsewhere."""
    chosen = _choose_samples(list(zip(*(it.texts for it in candidates), strict=True)))
    readings: dict[tuple[str, ...], Reading] = {}
    for candidate in candidates:
        samples = tuple(_shorten(candidate.texts[number], start) for number, start in chosen.items())
        readings.setdefault(samples, Reading(candidate.encoding, samples))
    return tuple(readings.values()) if len(readings) > 1 else ()


def _choose_samples(readings: Sequence[tuple[str, ...]]) -> dict[int, int]:
    """Choose the texts that best distinguish the candidates from the first, with the offset of the difference."""
    same = set(range(1, len(readings[0]))) if readings else set[int]()
    chosen: dict[int, int] = {}
    words = set[str]()
    starts = {number: _first_difference(texts) for number, texts in enumerate(readings)}
    rest = {number for number, texts in enumerate(readings) if len(set(texts)) > 1}
    while rest and len(chosen) < _SAMPLES:
        number = max(rest, key=lambda it: (_count_others(readings[it], same), len(set(readings[it])), -it))
        texts, start = readings[number], starts[number]
        chosen[number] = start
        same -= {place for place in same if texts[place] != texts[0]}
        words.add(_word_at(texts[0], start))
        # another word says more than the same one again
        rest = {it for it in rest if _word_at(readings[it][0], starts[it]) not in words}
    return dict(sorted(chosen.items()))


def _count_others(texts: Sequence[str], places: Iterable[int]) -> int:
    return sum(texts[place] != texts[0] for place in places)


def _word_at(text: str, place: int) -> str:
    before, after = text[:place].rpartition(" ")[2], text[place:].partition(" ")[0]
    return before + after


def _first_difference(texts: Sequence[str]) -> int:
    return next((at for at, several in enumerate(zip(*texts, strict=False)) if len(set(several)) > 1), 0)


def _shorten(text: str, at: int) -> str:
    start = max(0, at - _SHOWN // 2) if len(text) > _SHOWN else 0
    return f"{'…' * (start > 0)}{text[start : start + _SHOWN]}{'…' * (start + _SHOWN < len(text))}"

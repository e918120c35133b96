"""Search for the text that was signed: it differs from the right one by few mistakes, or has another key."""

import binascii
import hmac
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote

from storage.inspector.facts import Facts, ManagedAccount
from storage.inspector.reports import Finding, Mistake, finding

Draft = TypeVar("Draft")

_MANY: Final = 2  # mistakes in combination
_SIZE: Final = 32  # bytes of a signature
_LONGEST: Final = 256  # characters of a possible signature
_SEARCHED: Final = (
    8192  # characters of the signed text; a thousand variants of a longer one would take too long
)


# makes mistakes of one kind in a draft that may contain another mistake already
Change = Callable[[Draft], Iterable[tuple[Finding, Draft]]]


class Mac(NamedTuple):
    """A decoded signature, and what had to be corrected to decode it."""

    value: bytes
    corrected: tuple[Finding, ...] = ()


class SigningKey(NamedTuple):
    """A key to try; ``is_near`` keys belong to the account itself and are also tried with two mistakes."""

    value: bytes
    mistakes: tuple[Finding, ...] = ()
    is_near: bool = True


def search(
    draft: Draft,
    usual: Sequence[Change[Draft]],
    rare: Sequence[Change[Draft]],
    write: Callable[[Draft], bytes],
    macs: Sequence[Mac],
    keys: Sequence[SigningKey],
    depth: int,
) -> tuple[Finding, ...] | None:
    """Find the fewest mistakes that explain the signature: empty for a valid one, None if nothing explains it.

    At most ``depth`` of them concern the text. ``rare`` changes have many variants and are not combined with others.
    """
    near = [key for key in keys if key.is_near]
    if not macs:
        return None
    for mistakes, changed in _drafts(draft, usual, rare, depth):
        text = write(changed)
        for key in keys if len(mistakes) < _MANY else near:
            computed = hmac.digest(key.value, text, "sha256")
            for mac in macs:
                if hmac.compare_digest(computed, mac.value):
                    return (*mac.corrected, *key.mistakes, *mistakes)
    return None


def _drafts(
    draft: Draft, usual: Sequence[Change[Draft]], rare: Sequence[Change[Draft]], depth: int
) -> Iterator[tuple[tuple[Finding, ...], Draft]]:
    """Yield the draft as it should be, then with one mistake, then with two."""
    yield (), draft
    if depth == 0:
        return
    for change in (*usual, *rare):
        for mistake, changed in change(draft):
            yield (mistake,), changed
    if depth < _MANY:
        return
    for first, second in combinations(usual, 2):
        for mistake, changed in first(draft):
            for other, twice in second(changed):
                yield (mistake, other), twice


_HEXADECIMAL = re.compile(rb"[0-9a-fA-F]{64}")


def search_depth(length: int) -> int:
    """Return how many mistakes to search for in a text of this length."""
    return _MANY if length <= _SEARCHED else 0


def read_macs(signature: str) -> list[Mac]:
    """Decode a signature, as it is and corrected."""
    readings: list[tuple[str, tuple[Finding, ...]]] = [(signature, ())]
    if " " in signature:
        readings.append((signature.replace(" ", "+"), (finding(Mistake.PLUS_AS_SPACE, name="sig"),)))
    if "%" in signature:
        corrected = unquote(signature).replace(" ", "+")
        readings.append((corrected, (finding(Mistake.ENCODED_TWICE, name="sig"),)))
    if set(signature) & set("-_"):
        corrected = signature.replace("-", "+").replace("_", "/")
        readings.append((corrected, (finding(Mistake.URL_SAFE_BASE64),)))
    return [mac for text, corrected in readings for mac in _macs(text, corrected)]


def _macs(text: str, corrected: tuple[Finding, ...]) -> Iterator[Mac]:
    raw = text.encode()
    if _HEXADECIMAL.fullmatch(raw):
        yield Mac(bytes.fromhex(text), (*corrected, finding(Mistake.HEXADECIMAL)))
    if len(text) > _LONGEST:
        return
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    try:
        value = b64decode(padded.encode(), validate=True)
    except (binascii.Error, ValueError):
        return
    if _HEXADECIMAL.fullmatch(value):
        yield Mac(bytes.fromhex(value.decode()), (*corrected, finding(Mistake.HEXADECIMAL)))
    if len(value) == _SIZE:
        yield Mac(value, corrected if padded == text else (*corrected, finding(Mistake.PADDING)))


def candidate_keys(account: ManagedAccount, facts: Facts) -> list[SigningKey]:
    """Return the valid keys first, then keys that people confuse with them."""
    own = [SigningKey(key.value) for key in account.keys if key.is_accepted]
    retired = [
        SigningKey(key.value, (finding(Mistake.RETIRED_KEY, key=key.name),))
        for key in account.keys
        if not key.is_accepted
    ]
    # the text of a key signs if a client forgets to decode it
    texts = [
        SigningKey(binascii.b2a_base64(key.value, newline=False), (finding(Mistake.KEY_NOT_DECODED),))
        for key in account.keys
    ]
    found_keys = [*own, *retired, *texts, *_others(account, facts)]
    return list({key.value: key for key in reversed(found_keys)}.values())[::-1]


def _others(account: ManagedAccount, facts: Facts) -> Iterator[SigningKey]:
    if facts.development is not None:
        yield SigningKey(facts.development.value, (finding(Mistake.DEVELOPMENT_KEY),))
    for other in facts.accounts.values():
        if other.name != account.name:
            for key in other.keys:
                mistake = finding(Mistake.OTHER_ACCOUNT_KEY, key=key.name, account=other.name)
                yield SigningKey(key.value, (mistake,), is_near=False)

"""Where the texts end that begin with a prefix, in the order of the store, which is that of code points."""

from typing import Final

_LAST: Final = "\U0010ffff"
_SURROGATES: Final = range(0xD800, 0xE000)


def following(prefix: str) -> str | None:
    """The first text after all that begin with the prefix; None where there is none.

    The last character is raised by one, past the surrogates, which no key can hold and no address carry; the last
    character of all is dropped.
    """
    rest = prefix.rstrip(_LAST)
    if not rest:
        return None
    code = ord(rest[-1]) + 1
    return rest[:-1] + chr(_SURROGATES.stop if code in _SURROGATES else code)

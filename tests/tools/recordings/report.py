"""The outcome of a run: a table of exchanges by kind of difference, and each difference with both sides."""

from collections import Counter

from .comparison import Difference, Known
from .reading import Exchange
from .replay import Replayed

_WIDTH = 600


class Report:
    def __init__(self, known: list[Known], *, shows_known: bool, most: int) -> None:
        self._known, self._shows_known, self._most = known, shows_known, most
        self.recordings = self.unreadable = self.exchanges = self.identical = self.unlisted = 0
        self._kinds: Counter[tuple[str, str]] = Counter()
        self._reasons: Counter[str] = Counter()
        self._listed_only = 0

    def add(self, name: str, index: int, replayed: Replayed) -> None:
        self.exchanges += 1
        if not replayed.differences:
            self.identical += 1
            return
        exchange = replayed.exchange
        reasons = [self._reason(name, exchange, it) for it in replayed.differences]
        # differences that follow from another status are not counted in addition
        self.unlisted += None in reasons
        self._listed_only += None not in reasons
        for difference, reason in zip(replayed.differences, reasons, strict=True):
            kind = (difference.kind, "listed" if reason else "new")
            self._kinds[kind] += 1
            if reason:
                self._reasons[reason] += 1
            if (self._shows_known or not reason) and self._kinds[kind] <= self._most:
                print(f"\n{name}, exchange {index + 1}: {exchange.method} {exchange.url}")
                print(f"  {difference.kind}{_note(reason)}")
                print(f"  recorded: {_cut(difference.recorded, difference.answered)}")
                print(f"  answered: {_cut(difference.answered, difference.recorded)}")

    def _reason(self, name: str, exchange: Exchange, difference: Difference) -> str | None:
        return next((it.reason for it in self._known if it.fits(name, exchange, difference)), None)

    def table(self) -> str:
        rows = [
            ("recordings", self.recordings),
            ("files that could not be read", self.unreadable),
            ("exchanges", self.exchanges),
            ("  identical", self.identical),
            ("  different as listed in known.toml", self._listed_only),
            ("  different otherwise", self.unlisted),
            *((f"    {kind} ({how})", count) for (kind, how), count in sorted(self._kinds.items())),
            *((f"  known: {reason}", count) for reason, count in self._reasons.most_common()),
        ]
        return "\n".join(["", *(f"{count:7,} {title}" for title, count in rows)])


def _note(reason: str | None) -> str:
    return f" (known: {reason})" if reason else ""


def _cut(text: str, other: str) -> str:
    """Return a text on one line, from a little before the first place where it differs."""
    same = next((at for at, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), 0)
    start = max(0, same - 200)
    shown = text[start : start + _WIDTH]
    return ("…" if start else "") + repr(shown)[1:-1] + ("…" if start + _WIDTH < len(text) else "")

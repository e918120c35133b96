"""Reading of curl commands as the requests that they send."""

import re
import shlex
from dataclasses import dataclass, field
from typing import Final

from storage.inspector.reports import Finding, Mistake, finding

_COMMAND = re.compile(r"(?:[$>#%]\s+)?curl(?:\.exe)?\s")
_CONTINUED = re.compile(r"[\\^`][ \t]*\n")  # of a Unix shell, of cmd, of PowerShell
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:[A-Za-z_{(]|env:)")

_DATA: Final = frozenset(
    {"-d", "--data", "--data-ascii", "--data-raw", "--data-binary", "--data-urlencode", "--json"}
)
_FORM: Final = "application/x-www-form-urlencoded"
# options that do not affect the signed text: with an argument, and without
_WITH_WORD: Final = (
    "-o --output -m --max-time --connect-timeout -x --proxy --cacert --cert --key -w --write-out --resolve --retry "
    "--retry-delay -c --cookie-jar -b --cookie -e --referer -u --user --connect-to -D --dump-header"
)
_WITHOUT: Final = (
    "-s --silent -S --show-error -i --include -v --verbose -k --insecure -L --location -f --fail --fail-with-body "
    "--compressed -g --globoff -# --progress-bar --http1.1 --http2 --path-as-is -4 -6 -O --no-buffer -N"
)
_IGNORED_WITH_WORD: Final = frozenset(_WITH_WORD.split())
_IGNORED: Final = frozenset(_WITHOUT.split())


@dataclass(slots=True)
class Command:
    method: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    problems: tuple[Finding, ...] = ()


def is_command(text: str) -> bool:
    return _COMMAND.match(text) is not None


def read(text: str) -> Command:
    problems: list[Finding] = []
    text = _ANSI_C.sub(_quoted, _CONTINUED.sub(" ", text))
    if _VARIABLE.search(re.sub(r"'[^']*'", "", text)):  # a shell expands none in single quotes
        problems.append(finding(Mistake.SHELL_VARIABLE))
    try:
        words = shlex.split(text)
    except ValueError:
        problems.append(finding(Mistake.QUOTE_OPEN))
        words = text.replace('"', " ").replace("'", " ").split()
    command = _Reader(words[words.index(next(word for word in words if "curl" in word)) + 1 :])
    return command.read(problems)


class _Reader:
    """Reads the words in one pass; an option may be joined with its argument, and short options with each other."""

    def __init__(self, words: list[str]) -> None:
        self._words = words[::-1]
        self._url = self._method = ""
        self._headers: list[tuple[str, str]] = []
        self._types: list[tuple[str, str]] = []  # headers that an option implies unless they are given
        self._has_data = self._is_get = False

    def read(self, problems: list[Finding]) -> Command:
        while self._words:
            word = self._words.pop()
            if not word.startswith("-") or word == "-":
                self._url = self._url or word
            elif not self._option(word):
                problems.append(finding(Mistake.OPTION_UNKNOWN, option=word.partition("=")[0][:32]))
        given = {name.lower() for name, _ in self._headers}
        headers = [*self._headers, *(pair for pair in self._types if pair[0].lower() not in given)]
        kept = tuple((name, value) for name, value in headers if value)
        method = self._method or ("POST" if self._has_data and not self._is_get else "GET")
        url = self._url if "://" in self._url else f"http://{self._url}"
        return Command(method.upper(), url, kept, tuple(problems))

    def _option(self, word: str) -> bool:
        if word.startswith("--"):
            name, joined, value = word.partition("=")
            if joined:
                self._words.append(value)
            return self._named(name)
        name, rest = word[:2], word[2:]
        if rest:
            # the rest is the argument of an option that takes one, else more options
            takes_word = name in _IGNORED_WITH_WORD or name in {"-X", "-H", "-d", "-A", "-T"}
            self._words.append(rest if takes_word else f"-{rest}")
        return self._named(name)

    def _named(self, name: str) -> bool:
        match name:
            case _ if name in _IGNORED:
                pass
            case _ if name in _IGNORED_WITH_WORD:
                self._word()
            case "-I" | "--head":
                self._method = "HEAD"
            case "-G" | "--get":
                self._is_get = True
            case "-X" | "--request":
                self._method = self._word()
            case "-H" | "--header":
                # `Name:` removes a header, `Name;` sends it empty
                header, _, value = self._word().partition(":")
                self._headers.append((header.strip().rstrip(";"), value.strip()))
            case "-A" | "--user-agent":
                self._headers.append(("User-Agent", self._word()))
            case "--url":
                self._url = self._word()
            case "-T" | "--upload-file":
                self._method = self._method or "PUT"
                self._word()
            case _ if name in _DATA:
                self._word()
                self._has_data = True
                self._types.append(("Content-Type", "application/json" if name == "--json" else _FORM))
            case _:
                return False
        return True

    def _word(self) -> str:
        return self._words.pop() if self._words else ""


def _quoted(match: re.Match[str]) -> str:
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), match[1])
    for escape, character in (("\\n", "\n"), ("\\t", "\t"), ("\\'", "'"), ('\\"', '"'), ("\\\\", "\\")):
        text = text.replace(escape, character)
    return shlex.quote(text)

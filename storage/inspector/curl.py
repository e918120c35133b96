"""Parsing of curl commands to the requests that they send."""

import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

from storage.inspector.mistakes import Mistake
from storage.inspector.reports import Finding, finding

_COMMAND = re.compile(r"(?:[$>#%]\s+)?curl(?:\.exe)?\s")
_CONTINUED = re.compile(r"[\\^`][ \t]*\n")  # line ends that a Unix shell, cmd or PowerShell continues
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:[A-Za-z_{(]|env:)")

_MOST_WORDS: Final = 500  # the parser's time grows with the square of them

_WITH_WORD: Final = {
    "method": "-X --request",
    "header": "-H --header",
    "url": "--url",
    "file": "-T --upload-file",
    "json": "--json",
    "data": "-d --data --data-ascii --data-raw --data-binary --data-urlencode",
    # they do not affect the signed text
    "ignored_word": "-o --output -m --max-time --connect-timeout -x --proxy --cacert --cert --key -w --write-out "
    "--resolve --retry --retry-delay -c --cookie-jar -b --cookie -e --referer -u --user --connect-to -D --dump-header "
    "-A --user-agent",
}
_FLAGS: Final = {
    "head": "-I --head",
    "get": "-G --get",
    "ignored": "-s --silent -S --show-error -i --include -v --verbose -k --insecure -L --location -f --fail -N "
    "--no-buffer --fail-with-body --compressed -g --globoff -# --progress-bar --http1.1 --http2 --path-as-is -4 -6 -O",
}
_TAKING_WORD: Final = frozenset(" ".join(_WITH_WORD.values()).split())


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


_parser: Final = _Parser("curl", add_help=False, allow_abbrev=False)
for _name, _options in _WITH_WORD.items():
    _parser.add_argument(*_options.split(), dest=_name, action="append", default=[])
for _name, _options in _FLAGS.items():
    _parser.add_argument(*_options.split(), dest=_name, action="store_true")


@dataclass(slots=True)
class Command:
    method: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    problems: tuple[Finding, ...] = ()


def is_command(text: str) -> bool:
    return _COMMAND.match(text) is not None


def read(text: str) -> Command:
    problems = []
    text = _ANSI_C.sub(_quoted, _CONTINUED.sub(" ", text))
    if _VARIABLE.search(re.sub(r"'[^']*'", "", text)):  # a shell expands none in single quotes
        problems.append(finding(Mistake.SHELL_VARIABLE))
    try:
        words = shlex.split(text)
    except ValueError:  # a quote is not closed
        words = text.replace('"', " ").replace("'", " ").split()
    first = next(place for place, word in enumerate(words) if "curl" in word)
    options, rest, unknown = _parse_known(list(_join(words[first + 1 : first + _MOST_WORDS])))
    problems += [finding(Mistake.OPTION_UNKNOWN, option=word.partition("=")[0][:32]) for word in unknown]
    url = next(iter((*options.url, *rest)), "")
    # `Name:` removes a header, `Name;` sends it empty
    headers = [header.partition(":") for header in options.header]
    sent = [(name.strip().rstrip(";"), value.strip()) for name, _, value in headers]
    implied = "application/json" if options.json else "application/x-www-form-urlencoded"
    has_data = bool(options.json or options.data)
    if has_data and all(name.lower() != "content-type" for name, _ in sent):
        sent.append(("Content-Type", implied))
    method = "PUT" if options.file else "POST" if has_data and not options.get else "GET"
    if options.head:
        method = "HEAD"
    return Command(
        (options.method or [method])[-1].upper(),
        url if "://" in url else f"http://{url}",
        tuple((name, value) for name, value in sent if value),
        tuple(problems),
    )


def _join(words: list[str]) -> Iterator[str]:
    """Join options with their arguments, which may start with a hyphen."""
    left = iter(words)
    for word in left:
        if word not in _TAKING_WORD:
            yield word
        elif (argument := next(left, None)) is not None:
            yield f"{word}={argument}"


def _parse_known(words: list[str]) -> tuple[Namespace, list[str], list[str]]:
    """Parse a command; return known options, other words, and unknown options."""
    parsed, unreadable = _parse(words), set[str]()
    if parsed is None:  # letters that are joined, and not all of them known
        unreadable = {word for word in words if word.startswith("-") and _parse([word, ""]) is None}
        parsed = _parse([word for word in words if word not in unreadable])
    options, rest = parsed or _parser.parse_known_args([])
    unknown = [word for word in rest if word.startswith("-")]
    return options, [word for word in rest if not word.startswith("-")], [*unreadable, *unknown]


def _parse(words: list[str]) -> tuple[Namespace, list[str]] | None:
    try:
        return _parser.parse_known_args(words)
    except ValueError:
        return None


def _quoted(match: re.Match[str]) -> str:
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), match[1])
    for escape, character in (("\\n", "\n"), ("\\t", "\t"), ("\\'", "'"), ('\\"', '"'), ("\\\\", "\\")):
        text = text.replace(escape, character)
    return shlex.quote(text)

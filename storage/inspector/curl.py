"""Reading of curl commands as the requests that they send."""

import re
import shlex
from argparse import ArgumentParser
from dataclasses import dataclass, field
from typing import NoReturn

from storage.inspector.reports import Finding, Mistake, finding

_COMMAND = re.compile(r"(?:[$>#%]\s+)?curl(?:\.exe)?\s")
_CONTINUED = re.compile(r"[\\^`][ \t]*\n")  # of a Unix shell, of cmd, of PowerShell
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:[A-Za-z_{(]|env:)")

# options that do not affect the signed text: with an argument, and without
_IGNORED_WITH_WORD = (
    "-o --output -m --max-time --connect-timeout -x --proxy --cacert --cert --key -w --write-out --resolve --retry "
    "--retry-delay -c --cookie-jar -b --cookie -e --referer -u --user --connect-to -D --dump-header -A --user-agent"
)
_IGNORED = (
    "-s --silent -S --show-error -i --include -v --verbose -k --insecure -L --location -f --fail --fail-with-body "
    "--compressed -g --globoff -# --progress-bar --http1.1 --http2 --path-as-is -4 -6 -O --no-buffer -N"
)


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


_parser = _Parser("curl", add_help=False, allow_abbrev=False)
_parser.add_argument(*_IGNORED.split(), action="store_true", dest="ignored")
_parser.add_argument(*_IGNORED_WITH_WORD.split(), dest="ignored_word")
_parser.add_argument("-I", "--head", action="store_const", const="HEAD", dest="method")
_parser.add_argument("-X", "--request", dest="method")
_parser.add_argument("-G", "--get", action="store_true")
_parser.add_argument("-T", "--upload-file", dest="file")
_parser.add_argument("-H", "--header", action="append", default=[])
_parser.add_argument("--url", default="")
_parser.add_argument("--json")
_parser.add_argument(
    *("-d", "--data", "--data-ascii", "--data-raw", "--data-binary", "--data-urlencode"), dest="data"
)


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
    words = words[words.index(next(word for word in words if "curl" in word)) + 1 :]
    try:
        options, rest = _parser.parse_known_args(words)
    except ValueError as error:  # an option lacks its argument, or has too many
        option = str(error).removeprefix("argument ").partition(":")[0]
        problems.append(finding(Mistake.OPTION_UNKNOWN, option=option))
        options, rest = _parser.parse_known_args([word for word in words if not word.startswith("-")])
    unknown = [word for word in rest if word.startswith("-")]
    problems += [finding(Mistake.OPTION_UNKNOWN, option=word.partition("=")[0][:32]) for word in unknown]
    url = options.url or next((word for word in rest if word not in unknown), "")
    # `Name:` removes a header, `Name;` sends it empty
    headers = [header.partition(":") for header in options.header]
    sent = [(name.strip().rstrip(";"), value.strip()) for name, _, value in headers]
    implied = _media_type(options.data, options.json)
    if all(name.lower() != "content-type" for name, _ in sent):
        sent.append(("Content-Type", implied))
    return Command(
        (options.method or _method(options.get, options.file, implied)).upper(),
        url if "://" in url else f"http://{url}",
        tuple((name, value) for name, value in sent if value),
        tuple(problems),
    )


def _media_type(data: str | None, json: str | None) -> str:
    if json is not None:
        return "application/json"
    return "" if data is None else "application/x-www-form-urlencoded"


def _method(is_get: bool, file: str | None, media_type: str) -> str:
    if file is not None:
        return "PUT"
    return "POST" if media_type and not is_get else "GET"


def _quoted(match: re.Match[str]) -> str:
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), match[1])
    for escape, character in (("\\n", "\n"), ("\\t", "\t"), ("\\'", "'"), ('\\"', '"'), ("\\\\", "\\")):
        text = text.replace(escape, character)
    return shlex.quote(text)

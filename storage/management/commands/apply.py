"""The command `apply`: conform accounts to a manifest, show the differences, or write a manifest."""

import argparse
import json
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

from django.core.management.base import CommandError, CommandParser

from storage.management.command import DatabaseCommand
from storage.management.manifests import LocalServer, RemoteServer, Server
from storage.management.toml_writing import write_toml

_DRIFT: Final = 2  # exit status of --plan when something differs
_SIGNS: Final = {"create": "+", "change": "~", "delete": "-"}
_DONE: Final = {"create": "created", "change": "changed", "delete": "deleted"}


class Command(DatabaseCommand):
    help = (
        "Make accounts what a file in TOML declares: settings, members, tables, policies, indexes, webhooks. Shows what"
        " it would change, and asks."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", nargs="?", metavar="FILE", help="the manifest; -: standard input")
        parser.add_argument(
            "--plan",
            action="store_true",
            help="only say what differs; the exit status is 0 if nothing does, 2 if something does, 1 for an error",
        )
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument(
            "--prune",
            action="store_true",
            help="delete tables, policies, indexes, members and webhooks that the file leaves out of a section it has",
        )
        parser.add_argument(
            "--show",
            action="store_true",
            help="write the manifest of the accounts as they are, all by default",
        )
        parser.add_argument(
            "--account", action="append", default=[], help="with --show: only this; can be repeated"
        )
        parser.add_argument("--json", action="store_true", help="write the changes as JSON")
        parser.add_argument(
            "--server", metavar="URL", help="a server to ask over its management API, with TABLERO_TOKEN"
        )

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        """Exit with status 1 for an invalid command line, as 2 means that differences exist."""
        parser = super().create_parser(prog_name, subcommand, **options)

        def refuse(message: str) -> NoReturn:
            parser.print_usage(sys.stderr)
            parser.exit(1, f"{parser.prog}: error: {message}\n")

        parser.error = refuse  # type: ignore[method-assign]
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        self._is_remote = bool(options.get("server"))
        return super().execute(*args, **options)

    def prepare(self) -> None:
        if not self._is_remote:
            super().prepare()

    def handle(
        self,
        *args: Any,
        file: str | None,
        server: str | None,
        show: bool,
        account: Sequence[str],
        **options: Any,
    ) -> None:
        asked = _server(server)
        if show == bool(file):
            raise CommandError("Name a FILE, or use --show.")
        if file:
            self._apply(asked, _read(file), **options)
        else:
            self.stdout.write(write_toml(asked.show(account)), ending="")

    def _apply(
        self,
        server: Server,
        manifest: Mapping[str, Any],
        *,
        plan: bool,
        yes: bool,
        prune: bool,
        json: bool,
        **_: Any,
    ) -> None:
        changes = server.plan(manifest, prunes=prune)
        if plan or not json:
            self._write(changes, as_json=json)
        if any(it["problem"] for it in changes):
            raise CommandError("Some of these changes would be refused, so none is made.")
        if plan:
            sys.exit(_DRIFT if changes else 0)
        if not changes:
            return
        if not yes and not self._is_confirmed():
            raise CommandError("Nothing was changed.")
        # a person confirms what was shown; a script wants the result, also if another came first
        done = server.apply(manifest, prunes=prune, as_planned=not yes)
        if json:
            self._write(done, as_json=True)
        else:
            self.stdout.write(f"{_summarize(done, _DONE)}.")

    def _write(self, changes: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"changes": changes}, indent=2, ensure_ascii=False))
            return
        account = ""
        for change in changes:
            if change["account"] != account:
                account = change["account"]
                self.stdout.write(f"{account}")
            for line in _describe(change):
                self.stdout.write(f"  {line}")
        if changes:
            self.stdout.write(f"Plan: {_summarize(changes, {it: f'to {it}' for it in _SIGNS})}.")
        else:
            self.stdout.write("Nothing differs.")

    def _is_confirmed(self) -> bool:
        if not sys.stdin.isatty():
            raise CommandError("There is no terminal to ask at; use --yes to make these changes.")
        self.stdout.write("Make these changes? [y/N] ", ending="")
        self.stdout.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def _server(url: str | None) -> Server:
    if not url:
        return LocalServer()
    token = os.environ.get("TABLERO_TOKEN", "")
    if not token:
        raise CommandError("Set TABLERO_TOKEN to a token of the management API with the scope operate.")
    return RemoteServer(url, token)


def _read(path: str) -> dict[str, Any]:
    """Read a TOML manifest as JSON values; raises CommandError."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
        manifest: dict[str, Any] = _in_json(tomllib.loads(text))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not TOML: {error}.") from None
    return manifest


def _in_json(value: Any) -> Any:
    match value:
        case dict():
            return {name: _in_json(it) for name, it in value.items()}
        case list():
            return [_in_json(it) for it in value]
        case datetime() | date():
            return value.isoformat()
    return value


def _describe(change: Mapping[str, Any]) -> list[str]:
    """Format a change as a line, followed by a line for each differing member."""
    path = "/".join(filter(None, (change["table"], change["name"])))
    # a name that others gave must not look like other lines of the plan
    shown = path if path.isprintable() else json.dumps(path)
    what = " ".join(filter(None, (change["resource"].replace("_", " "), shown)))
    lines = [f"{_SIGNS[change['action']]} {what}"]
    lines += (f"    {line}" for line in _differences(change["before"], change["after"]))
    if change["problem"]:
        lines.append(f"    refused: {change['problem']}")
    return lines


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the members that differ with both values, descending into objects."""
    for name in dict.fromkeys((*before, *after)):
        values = [it[name] for it in (before, after) if name in it]
        old, new = values[0], values[-1]
        if len(values) > 1 and isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f"{path}{name}.")
        elif len(values) == 1 or old != new:
            yield f"{path}{name}: {' → '.join(json.dumps(it, ensure_ascii=False) for it in values)}"


def _summarize(changes: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> str:
    numbers = Counter(it["action"] for it in changes)
    return ", ".join(f"{numbers[action]} {word}" for action, word in words.items())

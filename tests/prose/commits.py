"""Checks subjects of commits: `part: Imperative verb …`, of at most 72 characters.

python3 -m tests.prose.commits            checks the commits since the one that commits.toml names
python3 -m tests.prose.commits FILE       checks the message in a file, as a hook of Git
"""

import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

from tests import programs

FOLDER = Path(__file__).parent
LONGEST = 72
FORM = re.compile(r"(?P<part>[a-z0-9_.][\w./*, -]*): (?P<verb>[A-Z][A-Za-z-]*)\b(?P<rest>.*)")
# made by Git, and never by hand
GENERATED = re.compile(r"(?:Merge|Revert|fixup!|squash!|amend!) ")
CLAUSES = re.compile(
    r"\bwhat (?:those|that|there|one) |\bof (?:what|which|whom)\b"
    r"|\b(?:that|those) of (?:that|those)\b|\bthe one who\b|\bwhoever\b"
)


@cache
def settings() -> tuple[str, frozenset[str]]:
    stored = tomllib.loads((FOLDER / "commits.toml").read_text())
    return stored["since"], frozenset(stored["verbs"].split())


def faults(subject: str) -> list[str]:
    """Return what is wrong with the subject of a commit; empty if nothing is."""
    if GENERATED.match(subject):
        return []
    messages = []
    if len(subject) > LONGEST:
        messages.append(f"has {len(subject)} characters; at most {LONGEST} fit")
    match = FORM.fullmatch(subject)
    if match is None:
        return [*messages, "is not of the form `part: Imperative verb …`, such as `console: Lock the row`"]
    if match["verb"].lower() not in settings()[1]:
        messages.append(
            f"begins with {match['verb']!r}, which is not a verb in the imperative of tests/prose/commits.toml"
        )
    if clause := CLAUSES.search(match["rest"]):
        messages.append(f"has a clause without a noun: {clause[0].strip()!r}")
    if subject.endswith("."):
        messages.append("ends with a full stop")
    return messages


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [programs.get("git"), "-C", str(FOLDER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def new_subjects() -> list[tuple[str, str]]:
    """Return hash and subject of the commits to check: the last one only if a shallow clone lacks the first."""
    since, _ = settings()
    known = git("merge-base", "--is-ancestor", since, "HEAD").returncode == 0
    log = git("log", "--no-merges", "--format=%h %s", *([f"{since}..HEAD"] if known else ["-1"]))
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in log.stdout.splitlines()]


def message_subject(text: str) -> str:
    """Return the first line of a message that Git does not cut as a comment."""
    return next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")


def main(arguments: list[str]) -> int:
    subjects = [("", message_subject(Path(arguments[0]).read_text()))] if arguments else new_subjects()
    wrong = [(name, subject, messages) for name, subject in subjects if (messages := faults(subject))]
    for name, subject, messages in wrong:
        print(f"{name} {subject}".strip())
        for message in messages:
            print(f"    {message}")
    print(f"{len(subjects)} subjects of commits, {len(wrong)} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

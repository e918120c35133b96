"""Command that prints phrases and names to replace, or lowers the baseline:

python3 -m tests.prose [PATH…]
python3 -m tests.prose --update
"""

import sys

from tests.prose import linter

HEAD = "# Findings by folder. They may only fall: `python3 -m tests.prose --update` lowers them.\n"


def update() -> int:
    counts = linter.counts(linter.all_findings())
    before, after = sum(linter.baseline().values()), sum(counts.values())
    if after > before:
        print(f"There are {after} findings, more than the {before} of the baseline.")
        return 1
    lines = (f'"{folder}" = {count}\n' for folder, count in counts.items())
    (linter.FOLDER / "baseline.toml").write_text(HEAD + "".join(lines))
    print(f"{before} → {after}")
    return 0


def main(arguments: list[str]) -> int:
    if arguments == ["--update"]:
        return update()
    number = 0
    for finding in linter.all_findings(arguments or linter.SOURCES):
        number += 1
        print(f"{finding.path}:{finding.line}: {finding.name}: {finding.text}\n    {finding.message}")
    print(f"{number} findings")
    return int(number > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

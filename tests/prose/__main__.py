"""Command that prints phrases and names to replace: `python3 -m tests.prose [PATH…]`."""

import sys

from tests.prose import linter


def main(arguments: list[str]) -> int:
    number = 0
    for finding in linter.all_findings(arguments or linter.SOURCES):
        number += 1
        print(f"{finding.path}:{finding.line}: {finding.name}: {finding.text}\n    {finding.message}")
    print(f"{number} findings")
    return int(number > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

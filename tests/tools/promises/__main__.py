"""Write the table of docs/reliability.md from the records of runs.

python3 -m tests.tools.promises
python3 -m tests.tools.promises --prove backups hostile-backups

The second also runs the tests that prove these promises, and records how many passed. The other programs record
themselves, with their option --record.
"""

import argparse
import re
import shlex
import subprocess
import sys
import time

from tests.live_server import ROOT
from tests.tools.promises import page
from tests.tools.promises.ledger import Promise, Run, read_promises, read_runs, record

_PASSED = re.compile(r"(\d+) passed")


def main(arguments: list[str] | None = None) -> int:
    promises = read_promises()
    tests = {it.name: it for it in promises if " manage.py test " in it.program}
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.tools.promises",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--prove", nargs="+", choices=sorted(tests), default=[], metavar="PROMISE")
    failed = [name for name in parser.parse_args(arguments).prove if not prove(tests[name])]
    content = page.PAGE.read_text("utf-8")
    page.PAGE.write_text(page.with_table(content, page.table(promises, read_runs())), "utf-8")
    return 1 if failed else 0


def prove(promise: Promise) -> bool:
    """Run the tests of a promise and record the run, unless one fails."""
    began = time.monotonic()
    command = ["env", *shlex.split(promise.program.replace("python3", sys.executable))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout[-2000:])
    passed = _PASSED.search(done.stdout)
    if done.returncode or passed is None:
        return False
    record(Run(promise.name, time.monotonic() - began, {"tests": int(passed[1])}))
    return True


if __name__ == "__main__":
    sys.exit(main())

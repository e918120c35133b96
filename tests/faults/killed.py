"""Processes that run an operation and kill themselves after a number of statements.

They are forked from one that has imported everything and has no connection, which takes milliseconds:

    with Forge(connection.settings_dict) as forge:
        forge.run("restore", after=7)
"""

import json
import os
import signal
import subprocess
import sys
import traceback

from tests.live_server import ROOT, clean_environment

NAME = "victim"  # application name of sessions of killed processes
FEW = 2  # tables and entities that a step of a deletion takes


class Forge:
    """The process that forks, as the test sees it."""

    def __init__(self, settings, secret):
        environment = clean_environment() | {"DJANGO_SETTINGS_MODULE": "console.settings"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.killed"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        known = {name: settings[name] for name in ("NAME", "HOST", "PORT", "USER", "PASSWORD", "OPTIONS")}
        # without a pool: a process that is killed needs none
        known["OPTIONS"] = {k: v for k, v in known["OPTIONS"].items() if k != "pool"} | {
            "application_name": NAME
        }
        self.ask(known | {"secret": secret})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def run(self, name, after=None):
        """Run an operation in a child; return the number of its statements, None if it was killed."""
        answer = self.ask([name, after])
        assert "error" not in answer, answer["error"]
        return answer["statements"]


def main():
    import django

    django.setup()
    from django.conf import settings
    from django.db import connections

    from storage.accounts import removal
    from storage.bulk_edit import bulk_edit_work
    from storage.tabular import entities as transfer
    from tests.faults.kill_cases import CASES

    removal._DROPPED_TOGETHER = bulk_edit_work.CHUNK = transfer.CHUNK = FEW
    known = json.loads(sys.stdin.readline())
    settings.SERVER_SECRET = known.pop("secret").encode()
    connections["default"].settings_dict.update(known)
    print("{}", flush=True)
    for line in sys.stdin:
        name, after = json.loads(line)
        print(json.dumps(fork(CASES[name].request, after)), flush=True)


def fork(operation, after):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(run(operation, after)).encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return {"statements": None}
        return json.loads(answer.read())


def run(operation, after):
    statements = count_statements(after)
    try:
        operation()
    except BaseException:
        return {"error": traceback.format_exc()}
    return {"statements": next(statements)}


def count_statements(after):
    """Count what is sent to PostgreSQL, commits too, and kill this process when so many were answered."""
    import itertools

    import psycopg

    counter, wait = itertools.count(), psycopg.Connection.wait

    def counting(self, *arguments, **options):
        result = wait(self, *arguments, **options)
        if next(counter) + 1 == after:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    psycopg.Connection.wait = counting
    return counter


if __name__ == "__main__":
    main()

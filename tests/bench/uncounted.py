"""`manage.py` but that no request is counted: what tests.bench.access compares the product with."""

import sys
from typing import Any

import uvicorn

from storage.server import command_line

start = uvicorn.Server.run


def run(*arguments: Any) -> None:
    from storage.operations.observer import Observer

    Observer.record = lambda self, observed: None  # type: ignore[method-assign]
    start(*arguments)


uvicorn.Server.run = run  # type: ignore[method-assign]
command_line.main(sys.argv[1:])

"""Keep a server under load of all kinds: protocol, console, management API, streams and jobs.

python3 -m tests.tools.soak --hours 8 --folder soak

Memory, descriptors, connections, disk and latencies are sampled each minute into `figures.jsonl` in the folder, and
drawn in `figures.svg` at the end. Run it again with the same folder to go on: hours add up, with the same data and a
server started again. It ends with status 1 after errors, or if memory, descriptors or connections keep growing.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tests.live_server import LiveServer, start_server
from tests.tools.bench.console import sign_in
from tests.tools.bench.rounds import progress
from tests.tools.promises import ledger
from tests.tools.soak import figures
from tests.tools.soak.figures import Latencies, Sample
from tests.tools.soak.load import PATIENCE, Load


def main(arguments: list[str] | None = None) -> int:
    options = read(arguments)
    folder = options.folder.resolve()
    folder.mkdir(mode=0o711, exist_ok=True)
    path = folder / "figures.jsonl"
    before = figures.read(path)
    piece = before[-1].piece + 1 if before else 1
    done = before[-1].hours if before else 0.0
    # `sign_in` expects the data there
    with start_server(folder / "tablero", "--workers", "2") as server, suppress(KeyboardInterrupt):
        soak(server, folder, piece, done, options)
    logged = sum("Traceback" in line for line in server.output)
    if logged:
        figures.append(path, Sample(piece, done + options.hours, {}, {"exceptions in the log": logged}))
    samples = figures.read(path)
    (folder / "figures.svg").write_text(figures.draw(samples))
    problems = figures.problems(samples)
    sys.stdout.write(figures.summary(samples) + "\n" + "".join(f"PROBLEM: {it}\n" for it in problems))
    if options.record:
        record([it for it in samples if it.piece == piece], done)
    return 1 if problems else 0


def read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.tools.soak", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=1.0, help="of this piece, default 1")
    parser.add_argument("--folder", type=Path, default=Path("soak"), help="default soak")
    parser.add_argument("--seconds", type=float, default=60.0, help="between two samples, default 60")
    parser.add_argument("--record", action="store_true", help="keep the figures for docs/reliability.md")
    return parser.parse_args(arguments)


def soak(server: LiveServer, folder: Path, piece: int, done: float, options: argparse.Namespace) -> None:
    user = f"soak{piece}"
    console = sign_in(server, folder, user)
    latencies = Latencies()
    began = time.monotonic()
    with Load(server, folder, server.add_token(user, "soak"), latencies).running(console):
        passed = 0.0
        latencies.wait_for("get", PATIENCE)  # also on a busy machine the first sample has one
        while passed < options.hours:
            time.sleep(min(options.seconds, 3600 * (options.hours - passed)))
            passed = (time.monotonic() - began) / 3600
            times, errors = latencies.drain()
            values = {**figures.measure(server.pid, folder / "tablero"), **times}
            figures.append(folder / "figures.jsonl", Sample(piece, done + passed, values, errors))
            progress(
                f"{done + passed:.2f} h, {values['memory of the server, MB']:.0f} MB, {sum(errors.values())} errors"
            )
            if server.process.poll() is not None:
                raise SystemExit("the server has ended:\n" + "\n".join(server.output[-20:]))


def record(piece: Sequence[Sample], done: float) -> None:
    hours = max((it.hours for it in piece), default=done) - done
    requests = sum(value for it in piece for name, value in it.values.items() if name.endswith("requests"))
    errors = sum(sum(it.errors.values()) for it in piece)
    drifts = len(figures.problems([replace(it, errors={}) for it in piece]))
    result = {"hours": round(hours, 2), "requests": round(requests), "errors": errors, "drifts": drifts}
    ledger.record(ledger.Run("steady", hours * ledger.HOUR, result))


if __name__ == "__main__":
    sys.exit(main())

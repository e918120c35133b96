"""Child process that ends with all of its descendants when its parent does."""

import contextlib
import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which then ends
    # the lock of the backups, which is inherited, is free again when the last process is gone
    arguments = sys.argv[1:]
    uid = gid = None
    groups: list[int] | None = None
    if arguments[0].startswith("--user="):
        uid, gid = map(int, arguments.pop(0).removeprefix("--user=").split(":"))
        groups = []
    program = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        close_fds=False,
        user=uid,
        group=gid,
        extra_groups=groups,
    )
    threading.Thread(target=end_with_input, args=(program,), daemon=True).start()
    return 0 if program.wait() == 0 else 1


def end_with_input(program: "subprocess.Popen[bytes]") -> None:
    os.read(0, 1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())

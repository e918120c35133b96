"""Process of a scheduled backup, which aborts cleanly when its standard input closes."""

import os
import signal
import sys
import threading

from storage.server import command_line


def main() -> None:
    # the exit of an exception removes files, and unlike KeyboardInterrupt waits for running programs
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_end_with_input, daemon=True).start()
    command_line.main(sys.argv[1:])


def _end_with_input() -> None:
    os.read(0, 1)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


if __name__ == "__main__":
    main()

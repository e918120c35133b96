"""Start a server by the command of the arguments, ask it for its health when it says it is ready, and stop it."""

import re
import signal
import subprocess
import sys
import threading
import urllib.request

PATIENCE = 900  # seconds for the installation and the first start


def main() -> None:
    is_healthy = False
    # a shell that started this in the background ignores it, and the server would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        watch = threading.Timer(PATIENCE, server.kill)
        watch.start()
        try:
            url = ""
            assert server.stdout is not None
            for line in server.stdout:
                print(line, end="", flush=True)
                if address := re.match(r"Tablero serves on (\S+)", line):
                    url = address[1]
                if line.startswith("Ready"):
                    with urllib.request.urlopen(f"{url}/ui/healthz", timeout=60) as answer:
                        is_healthy = answer.status == 200
                    server.send_signal(signal.SIGINT)
            server.wait()
        finally:
            watch.cancel()
            server.kill()
    if not is_healthy or server.returncode != 0:
        sys.exit(
            f"The server was {'' if is_healthy else 'not '}healthy and ended with status {server.returncode}."
        )
    print(f"The server on {url} was healthy and stopped.")


if __name__ == "__main__":
    main()

"""The command `tablero`, also as `python -m tablero`."""

import sys
from pathlib import Path

APPLICATION = Path(__file__).parent / "application"


def main() -> None:
    sys.path.insert(0, str(APPLICATION))
    from storage.server import garbage

    garbage.pause()
    from storage.server.command_line import main as run

    run()


if __name__ == "__main__":
    main()

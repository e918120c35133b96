"""The command `tablero`, also as `python -m tablero_server`."""

import sys
from pathlib import Path

_INSTALLED = Path(__file__).parent / "application"  # where a wheel has what a checkout has at its top
APPLICATION = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1]


def main() -> None:
    try:
        sys.path.insert(0, str(APPLICATION))
        from storage.server import garbage

        garbage.pause()
        from storage.server.command_line import main as run

        run()
    except KeyboardInterrupt:  # while it reads its modules
        sys.exit(130)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Run a command of Tablero."""

from storage.server.command_line import main

if __name__ == "__main__":
    main()

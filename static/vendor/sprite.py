#!/usr/bin/env python3
"""Make the sprite of icons anew: static/vendor/sprite.py FOLDER, the unpacked npm package lucide-static.

It holds the icons that icons.txt beside this file names, one per line.
"""

import re
import sys
from pathlib import Path

VENDOR = Path(__file__).parent


def main() -> None:
    package = Path(sys.argv[1])
    names = (VENDOR / "icons.txt").read_text().split()
    symbols = "".join(symbol(name, (package / "icons" / f"{name}.svg").read_text()) for name in names)
    [sprite] = (VENDOR / "lucide").glob("*/sprite.svg")
    sprite.write_text(f'<svg xmlns="http://www.w3.org/2000/svg">\n{symbols}</svg>\n')


def symbol(name: str, svg: str) -> str:
    shapes = re.sub(r"\s+", " ", svg[svg.index(">", svg.index("<svg")) + 1 : svg.index("</svg>")]).strip()
    return (
        f'<symbol id="{name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75"'
        f' stroke-linecap="round" stroke-linejoin="round">{shapes}</symbol>\n'
    )


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Make the small fonts anew: static/vendor/fonts.py FOLDER, one that holds the unpacked npm packages.

Needs fonttools and brotli, which nothing else does. Of the published files of a family, what every page loads keeps
the weights and features that the console uses; Turkish has a file of its own, as latin-ext weighs more than all the
rest and is wanted for names in other languages only.
"""

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

VENDOR = Path(__file__).parent
VERSION = "5.3.0"
WEIGHTS = (400, 700)
TURKISH = "ĞğİıŞş₺"
# no ligatures: data are shown as they are
FEATURES = ["kern", "mark", "mkmk", "ccmp", "locl", "tnum", "zero"]


def main() -> None:
    for family in ("inter", "jetbrains-mono"):
        files = Path(sys.argv[1]) / family / "files"
        latin = TTFont(files / f"{family}-latin-wght-normal.woff2", recalcTimestamp=False)
        extended = TTFont(files / f"{family}-latin-ext-wght-normal.woff2", recalcTimestamp=False)
        save(latin, set(latin.getBestCmap()), f"{family}-latin")
        save(extended, set(map(ord, TURKISH)), f"{family}-turkish")


def save(font: TTFont, characters: set[int], name: str) -> None:
    subsetter = Subsetter(Options(layout_features=FEATURES, hinting=False, name_IDs=["*"]))
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font = instantiateVariableFont(font, {"wght": WEIGHTS})
    font.flavor = "woff2"
    family = name.rpartition("-")[0]
    font.save(VENDOR / family / VERSION / f"{name}.woff2")


if __name__ == "__main__":
    main()

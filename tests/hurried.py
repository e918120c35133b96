"""manage.py with other constants, so that a test need not wait as long as users do: `hurried.py JSON COMMAND ...`.

JSON maps modules to names and values. Workers, which are other processes, keep the constants of the product.
"""

import json
import runpy
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Finder(PathFinder):
    """Finds the modules whose constants are changed."""

    constants: dict[str, dict[str, object]] = {}

    @classmethod
    def find_spec(cls, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname not in cls.constants:
            return None
        spec = super().find_spec(fullname, path, target)
        assert spec is not None and spec.origin is not None
        spec.loader = Loader(fullname, spec.origin)
        return spec


class Loader(SourceFileLoader):
    def exec_module(self, module: object) -> None:
        super().exec_module(module)
        for name, value in Finder.constants[self.name].items():
            assert hasattr(module, name), f"{self.name} has no {name}"
            setattr(module, name, value)


if __name__ == "__main__":
    Finder.constants = json.loads(sys.argv.pop(1))
    sys.meta_path.insert(0, Finder)
    sys.path[0] = str(ROOT)
    sys.argv[0] = str(ROOT / "manage.py")
    runpy.run_path(sys.argv[0], run_name="__main__")

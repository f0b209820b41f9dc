"""Faces: a room's `__init__` lists what the room offers; a name is imported when somebody asks for it, and not before.

    if TYPE_CHECKING:
        from fixfirst.game.world import World
    else:
        __getattr__, __dir__ = offers(__name__)

People and type checkers read the imports, and so does Python, when the face is first entered: the list stands in one place.
Whoever wants one name of a room does not wait for what the others need, which for Numba and SciPy is half a second each.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def offers(face: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A face's `__getattr__` and `__dir__` (PEP 562), made of the imports in its source."""
    names = vars(sys.modules[face])
    origin = offered(names["__loader__"].get_data(names["__file__"]))

    def __getattr__(name: str) -> Any:
        if name not in origin:
            raise AttributeError(f"module {face!r} has no attribute {name!r}")
        names[name] = getattr(import_module(origin[name]), name)
        return names[name]

    return __getattr__, lambda: sorted({*names, *origin})


def offered(source: bytes) -> dict[str, str]:
    """What the source of a face imports for type checkers: name -> module it comes from."""
    blocks = (node.body for node in ast.parse(source).body if isinstance(node, ast.If))
    imports = [node for body in blocks for node in body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in imports for alias in node.names if node.module is not None}

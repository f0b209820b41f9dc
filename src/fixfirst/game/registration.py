"""`gymnasium.make("fixfirst/Cage2-v0")` works once fixfirst is imported, whether Gymnasium comes before it or after.

Gymnasium takes two tenths of a second to import, which a command that plays nothing need not wait for: the environments are
registered as soon as somebody else imports it.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

GYMNASIUM = "gymnasium"
_ENVS = "fixfirst.game.gym_env"


def register_environments() -> None:
    """Register now if Gymnasium is there, else when it comes."""
    if GYMNASIUM in sys.modules:
        _register(sys.modules[GYMNASIUM])
    else:
        sys.meta_path.insert(0, _Attendant())


def _register(gymnasium: Any) -> None:
    gymnasium.register(id="fixfirst/Cage2-v0", entry_point=f"{_ENVS}:Cage2", vector_entry_point=f"{_ENVS}:VecCage2")


class _Attendant:
    """Finds Gymnasium where the other finders do, and registers our environments right after it was imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != GYMNASIUM:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                sys.meta_path.remove(self)
                _register(module)

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec

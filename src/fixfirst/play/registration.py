"""Register our environments with Gymnasium, now or as soon as somebody imports it.

Gymnasium takes two tenths of a second to import, which a command that plays nothing need not wait for.
"""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

GYMNASIUM = "gymnasium"
ENVS = "fixfirst.play.envs"


def register_environments() -> None:
    """Make `gymnasium.make("fixfirst/Cage2-v0")` work, whether Gymnasium is imported before fixfirst or after."""
    if GYMNASIUM in sys.modules:
        _register(sys.modules[GYMNASIUM])
    else:
        sys.meta_path.insert(0, _AfterGymnasium())


def _register(gymnasium: Any) -> None:
    gymnasium.register(id="fixfirst/Cage2-v0", entry_point=f"{ENVS}:Cage2", vector_entry_point=f"{ENVS}:VecCage2")
    gymnasium.register(id="fixfirst/Red-v0", entry_point="fixfirst.api.red_env:RedEnv")


class _AfterGymnasium:
    """A finder of modules that waits for Gymnasium, then removes itself and registers once Gymnasium is imported."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        if name != GYMNASIUM:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                _register(module)

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec

"""Libraries that take seconds to import come when a test first uses them: every process collects all tests, and runs few."""

from importlib import import_module


class Late:
    """A module by its name, imported when something of it is asked for."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, part):
        if part.startswith("__") or part == "_mock_name":  # pytest asks all that it finds in a file what it is
            raise AttributeError(part)
        return getattr(import_module(self._name), part)

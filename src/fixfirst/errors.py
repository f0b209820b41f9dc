"""Everything fixfirst raises on purpose.

FixfirstError
├── WorkflowError       an order of unit types, or a grouping of hosts, that makes no sense
├── WorldError          a simulated network that cannot be built or stepped as asked
│   ├── ActionError     actions of the wrong shape, type or range
│   └── ResetNeeded     a step where a reset must come first
├── SearchError         a search that cannot be set up, or is told something impossible
└── ConformanceError    a recording that cannot be read

A message says what came, what is wrong and what is right. The command line prints it as one line and exits with 2;
a traceback is a bug.
"""


class FixfirstError(Exception):
    """Base of all errors a user can cause."""


class WorkflowError(FixfirstError, ValueError):
    """An order of unit types, or a grouping of hosts, that makes no sense."""


class WorldError(FixfirstError, ValueError):
    """A simulated network that cannot be built or stepped as asked."""


class ActionError(WorldError):
    """Actions of the wrong shape, type or range."""


class ResetNeeded(WorldError):
    """A step where a reset must come first."""


class SearchError(FixfirstError, ValueError):
    """A search that cannot be set up, or is told something impossible."""


class ConformanceError(FixfirstError, ValueError):
    """A recording of CybORG episodes that cannot be read."""

"""The command line: a file per command, each a thin shell over a function of `api`."""

from fixfirst.cli.entry import main as main

# In the order of use.
COMMANDS = (
    "search",
    "train",
    "resume",
    "runs",
    "report",
    "evaluate",
    "compare",
    "watch",
    "export",
    "scenario",
    "conform",
    "record",
    "bench",
    "doctor",
)

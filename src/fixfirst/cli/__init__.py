"""The command line: a file per subject, each command a thin shell over a function of `api`."""

from fixfirst.cli.entry import main as main

COMMANDS = {  # in the order of use, with the file of each
    "search": "running",
    "train": "running",
    "resume": "running",
    "runs": "runs",
    "report": "pages",
    "evaluate": "evaluate",
    "compare": "evaluate",
    "watch": "pages",
    "export": "export",
    "scenario": "scenario",
    "conform": "recordings",
    "record": "recordings",
    "bench": "machine",
    "doctor": "machine",
}

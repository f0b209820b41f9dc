"""The command line: commands by what they are about, each a thin shell over a function of `api`."""

from fixfirst.cli.entry import main as main

COMMANDS = {  # in the order of use, with the file of each
    "search": "running",
    "train": "running",
    "resume": "running",
    "runs": "runs",
    "report": "pages",
    "evaluate": "policies",
    "compare": "policies",
    "watch": "pages",
    "export": "policies",
    "scenario": "scenario",
    "conform": "cyborg",
    "record": "cyborg",
    "bench": "bench",
    "doctor": "cyborg",
}

"""How long does one wait for a command that has little to do? Processor time of whole processes.

    python benchmarks/startup.py [--rounds 10] [--json]

User and system seconds of a process and its children, the best of some rounds, in which the commands take turns, with files
and machine code in their caches; as such, and as a multiple of `import numpy`, which differs less between machines.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

ORDER = "enterprise > op_server > op_host > user > defender"
TRAIN = ["-m", "fixfirst", "train", "--workflow", ORDER, "--total-episodes", "5000", "--n-envs", "100", "--quiet"]
RUNS = ("runs/first", "runs/second", "runs/third")
YARDSTICK = "import numpy"
COMMANDS = {
    "nothing": ["-c", "pass"],
    YARDSTICK: ["-c", YARDSTICK],
    "import fixfirst": ["-c", "import fixfirst"],
    "fixfirst --help": ["-m", "fixfirst", "--help"],
    "fixfirst search --help": ["-m", "fixfirst", "search", "--help"],
    "fixfirst train --help": ["-m", "fixfirst", "train", "--help"],
    f"fixfirst runs ({len(RUNS)} of them)": ["-m", "fixfirst", "runs"],
    "fixfirst evaluate RUN --episodes 100": ["-m", "fixfirst", "evaluate", RUNS[0], "--episodes", "100"],
}


def cpu_seconds(arguments, folder):
    """What a process with these arguments of Python takes of the processor, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(rounds):
    """Name -> seconds, the best of some rounds after one that fills the caches."""
    with tempfile.TemporaryDirectory() as folder:
        for run in RUNS:
            cpu_seconds([*TRAIN, "--out", run], folder)
        times = {name: [] for name in COMMANDS}
        for number in range(rounds + 1):
            for name, arguments in COMMANDS.items():
                seconds = cpu_seconds(arguments, folder)
                if number > 0:
                    times[name].append(seconds)
    return {name: min(found) for name, found in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if os.environ.get("PYTHONPATH"):  # the processes start elsewhere
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, os.environ["PYTHONPATH"].split(os.pathsep)))
    best = measure(args.rounds)
    rows = {name: {"cpu_s": seconds, "times_numpy": seconds / best[YARDSTICK]} for name, seconds in best.items()}
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'CPU seconds, best of ' + str(args.rounds):40}{'seconds':>9}{'x numpy':>9}")
    for name, row in rows.items():
        print(f"{name:40}{row['cpu_s']:9.2f}{row['times_numpy']:9.1f}")


if __name__ == "__main__":
    main()

"""Count the house: lines, files, names that cross walls, names defined twice, and what a small search enters.

    python benchmarks/house.py            the table of CONTRIBUTING.md
    python benchmarks/house.py --no-walk  without the search, which takes half a minute

A name crosses a wall when a file of one room imports it from a module of another. A public name is defined twice when two
modules define it at their top level. Files and functions are entered when Python code of theirs runs, from the import of the
command line to the written report; compiled functions do not count. To Python, comprehensions, lambdas and the bodies of
classes are functions, too: those written with `def` are counted apart.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "fixfirst"
SEARCH = ("search", "--total-episodes", "12000", "--workers", "1", "--quiet")

# Runs a command and prints how many files and functions of ours were entered.
WALK = """
import sys, threading
root, arguments = sys.argv[1] + "/", sys.argv[2:]
entered = set()
def hook(frame, event, argument):
    if event == "call":
        code = frame.f_code
        if code.co_filename.startswith(root) and code.co_name != "<module>":
            by_def = not code.co_name.startswith("<") and code.co_flags & 1  # the body of a class has no fast locals
            entered.add((code.co_filename, code.co_qualname, bool(by_def)))
threading.setprofile(hook)
sys.setprofile(hook)
from fixfirst.cli import main
code = main(arguments)
sys.setprofile(None)
print("walk", code, len({file for file, _, _ in entered}), len(entered), sum(by_def for _, _, by_def in entered))
"""


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def lines(paths: list[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths)


def room_of(module: str) -> str:
    """The room of a dotted module below fixfirst; files beside the rooms are a room of their own."""
    return module.split(".")[0] if (SOURCE / module.split(".")[0]).is_dir() else "fixfirst"


def crossing(source: Path) -> set[tuple[str, str]]:
    """All (module, name) that some file imports from another room; a module imported as a whole counts as one name."""
    found = set()
    for path in files(source):
        here = path.relative_to(source)
        room = here.parts[0] if len(here.parts) > 1 else "fixfirst"
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fixfirst."):
                module = node.module.removeprefix("fixfirst.")
                if room_of(module) != room:
                    found |= {(module, alias.name) for alias in node.names}
    return found


def defined(source: Path) -> dict[str, set[str]]:
    """Public names at the top level of modules -> the modules that define them."""
    found = defaultdict(set)
    for path in files(source):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.Assign):
                names = [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            else:
                names = []
            for name in names:
                if not name.startswith("_"):
                    found[name].add(str(path.relative_to(source)))
    return found


def walk(source: Path) -> list[int]:
    """How many files and functions a small search enters, and how many of these are written with `def`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", WALK, str(source), *SEARCH, "--out", f"{folder}/run"]
        environment = os.environ | {"PYTHONPATH": str(source.parent)}
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    words = run.stdout.split("walk ")[-1].split()
    if run.returncode or words[0] != "0":
        sys.exit(f"the search failed:\n{run.stderr}")
    return [int(word) for word in words[1:4]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=SOURCE, help="another checkout's src/fixfirst")
    parser.add_argument("--no-walk", action="store_true", help="leave out what a search enters")
    parser.add_argument("--list", action="store_true", help="list names that cross walls, and those defined twice")
    options = parser.parse_args()
    source = options.source.resolve()
    crossed, twice = crossing(source), {name: places for name, places in defined(source).items() if len(places) > 1}
    rows = {
        "lines in src": lines(files(source)),
        "files in src": len(files(source)),
        "names imported across room walls": len(crossed),
        "public names defined in more than one module": len(twice),
        "lines in tests": lines(files(source.parent.parent / "tests")),
    }
    if not options.no_walk:
        what = ("files entered by a small search", "functions entered by a small search", "... written with def")
        rows |= dict(zip(what, walk(source), strict=True))
    for name, value in rows.items():
        print(f"{name:46} {value:>7,}")
    if options.list:
        for module, name in sorted(crossed):
            print(f"  crosses  {module}.{name}")
        for name, places in sorted(twice.items()):
            print(f"  twice    {name}: {', '.join(sorted(places))}")


if __name__ == "__main__":
    main()

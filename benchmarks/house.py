"""Count what a reader of the house meets, and hold it to the budget in CONTRIBUTING.md.

    python benchmarks/house.py            every figure beside its budget
    python benchmarks/house.py --check    exit with 1 if one is above it, or if a rule of the house is broken
    python benchmarks/house.py --no-walk  what the sources say, without a search and a league, which take a minute
    python benchmarks/house.py --list     and where each figure comes from, and where else to look
    python benchmarks/house.py --write    write today's figures into CONTRIBUTING.md

How it counts:

- A name crosses a wall when a file of one room uses it and a module of another has it: by `from fixfirst.game.world import
  World` as much as by `world.World`. The same name counts once, however many use it. Attributes of values do not count:
  what the module does not define at its top is an attribute of a local variable with the module's name.
- An import points upwards when its room comes after that of the file, also by a string that names the module, and also for
  type checkers only.
- `Any` stands in place of a type of ours when a parameter or attribute is annotated `Any` and something is read of it that
  our classes have. The rooms that adapt other libraries are left out: they read attributes of foreign objects.
- A file or function is entered when Python code of it runs, from the import of the command line to the written report;
  compiled functions do not count, the bodies of classes do. A call is between rooms when the nearest caller of ours is in
  another one.
- A view is a settings object that is made of another without validation.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import symtable
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "fixfirst"
# In the order in which data flows: a file imports from its own room and from those before it.
ROOMS = (
    "base",
    "game",
    "orders",
    "runs",
    "stats",
    "policy",
    "cyborg",
    "play",
    "settings",
    "learner",
    "searcher",
    "reporter",
)
ROOMS += ("adapters", "api", "cli")
ADAPTERS = {"cyborg", "adapters"}  # rooms that meet other libraries' objects

# No program can tell that two classes say the same thing: whoever adds a class that does puts it here.
SHAPES = {
    "shapes of what an order earned": "Evaluation OrderResult Swap Ranked Trial ValueRow",
    "shapes of a table": "Table",
}

# Participles and pronouns where the field has a noun.
DIALECT = {"found", "place", "told", "shown", "kept", "said", "known", "one", "earned"}

SEARCH = """
from fixfirst.cli import main
assert not main(["search", "--total-episodes", "12000", "--workers", "1", "--quiet", "--out", "run"])
"""
LEAGUE = 'import fixfirst; fixfirst.train_league(updates=4, responses=1, out="run", quiet=True)'

# Runs a program and prints what of ours was entered, and what was made.
WALK = """
import sys, json, threading, importlib
from collections import Counter
root, counted_class, program = sys.argv[1] + "/", *sys.argv[2:]
entered, made, between = set(), Counter(), 0
def hook(frame, event, argument):
    global between
    if event != "call":
        return
    code = frame.f_code
    if not code.co_filename.startswith(root):
        if code.co_filename.endswith("pydantic/main.py") and code.co_name in ("model_construct", "model_copy"):
            made["views"] += 1
        return
    if code.co_name == "<module>":
        return
    made[code.co_qualname] += code.co_qualname == "Workflow.__post_init__"
    entered.add((code.co_filename, code.co_qualname))
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(root):
        caller = caller.f_back
    if caller is not None:
        here, there = (name[len(root):].split("/")[0] for name in (code.co_filename, caller.f_code.co_filename))
        between += here != there
module, name = counted_class.rsplit(".", 1)
tuples = getattr(importlib.import_module(module), name)
def counting(make):
    def made_by(*arguments, **named):
        made[name] += 1
        return make(*arguments, **named)
    return made_by
tuples.__new__, tuples._make = counting(tuples.__new__), staticmethod(counting(tuples._make))
threading.setprofile(hook)
sys.setprofile(hook)
exec(program)
sys.setprofile(None)
functions = [name for _, name in entered if not name.endswith(">")]  # comprehensions and lambdas are no names
files = len({file for file, _ in entered})
print("walk", json.dumps({"files": files, "functions": len(functions), "between": between, "made": made}))
"""


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in files(folder))


class File:
    """One file of the source, parsed."""

    def __init__(self, path: Path, source: Path):
        self.name = str(path.relative_to(source))
        self.room = self.name.split("/")[0]
        self.text = path.read_text()
        self.tree = ast.parse(self.text)
        self.nodes = list(ast.walk(self.tree))

    def imports(self, *, at_run_time: bool = False) -> Iterator[tuple[str, str, str]]:
        """Yield (module below fixfirst, name, what it is called here)."""
        checking = [
            node for node in self.tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ]
        unread = {node for block in checking for node in ast.walk(block)} if at_run_time else set()
        for node in self.nodes:
            if node in unread:
                continue
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fixfirst":
                for alias in node.names:
                    yield (node.module or "").partition(".")[2], alias.name, alias.asname or alias.name

    def crossing(self) -> set[tuple[str, ...]]:
        """Return (room, module, name) of every name of another room."""
        names: set[tuple[str, ...]] = set()
        modules = {}
        for module, name, here in self.imports():
            if module in ROOMS and module != self.room:
                modules[here] = (module, name)
            elif module and module.split(".")[0] != self.room:
                names.add((*module.split("."), name))
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                names.add((*modules[node.value.id], node.attr))
        return names

    def defines(self) -> set[str]:
        """Return the names at the module's top."""
        symbols = symtable.symtable(self.text, self.name, "exec").get_symbols()
        return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}

    def upwards(self) -> list[str]:
        """Return the imports from later rooms."""
        if self.room not in ROOMS:
            return []
        later = ROOMS[ROOMS.index(self.room) + 1 :] or ("no room",)
        by_name = [f"{module}: {name}" for module, name, _ in self.imports() if (module or name).split(".")[0] in later]
        texts = [node.value for node in self.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        by_string = [text for text in texts if re.fullmatch(rf"fixfirst\.({'|'.join(later)})(\.\w+)*\.?", text)]
        return [f"{self.name} imports {what}" for what in by_name + by_string]

    def anys(self, ours: set[str]) -> list[str]:
        """Return what is annotated `Any` although something of ours is read of it."""
        if self.room not in ROOMS or self.room in ADAPTERS:
            return []
        annotated = []  # (name, annotation, the function or class in which it is known)
        for scope in self.nodes:
            if isinstance(scope, ast.FunctionDef):
                arguments = (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)
                annotated += [(argument.arg, argument.annotation, scope) for argument in arguments if argument.annotation]
            if isinstance(scope, ast.FunctionDef | ast.ClassDef | ast.Module):
                parts = [part for part in scope.body if isinstance(part, ast.AnnAssign)]
                annotated += [(ast.unparse(part.target).removeprefix("self."), part.annotation, scope) for part in parts]
        lines = []
        for name, annotation, scope in annotated:
            if re.search(r"(^|\| )'?Any\b", ast.unparse(annotation)) and (used := self._read_of(name, scope) & ours):
                lines.append(f"{self.name} {name}: {ast.unparse(annotation)}, of which {', '.join(sorted(used))}")
        return lines

    def _read_of(self, name: str, scope: ast.AST) -> set[str]:
        """Return the attributes that are read of a name, or of an attribute of that name."""
        nodes = [node for node in ast.walk(scope) if isinstance(node, ast.Attribute)]
        return {node.attr for node in nodes if name in (getattr(node.value, "id", None), getattr(node.value, "attr", None))}


def own_attributes(sources: list[File]) -> set[str]:
    """Return the attributes that our classes have and those of the language and of NumPy have not."""
    import numpy as np

    ours = set()
    for file in sources:
        for node in file.nodes:
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef):
                        ours.add(part.name)
                    elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                        ours.add(part.target.id)
    foreign = (str, bytes, int, float, list, dict, tuple, set, Path, np.ndarray, np.random.Generator, argparse.Namespace)
    return ours - {name for kind in foreign for name in dir(kind)}


def broken_rules(sources: list[File]) -> list[str]:
    """Return what stands against the rules of the house that are no figure."""
    broken = [f"{file.name} is in no room" for file in sources if file.room not in ROOMS and "/" in file.name]
    (tree,) = re.findall(r"^```\nsrc/fixfirst/\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S)
    if re.findall(r"^  (\w+)/", tree, re.M) != list(ROOMS):
        broken.append("CONTRIBUTING.md shows other rooms, or in another order")
    for room in ROOMS:
        inside = {file.name: file for file in sources if file.room == room and not file.name.endswith("__init__.py")}
        waiting = {
            name: {
                f"{m if m.startswith(f'{room}.') else f'{m}.{n}'}".replace(".", "/") + ".py"
                for m, n, _ in file.imports(at_run_time=True)
            }
            & set(inside) - {name}
            for name, file in inside.items()
        }
        while ready := [name for name, needs in waiting.items() if not needs & set(waiting)]:
            waiting = {name: needs for name, needs in waiting.items() if name not in ready}
        if waiting:
            broken.append(f"these import each other: {', '.join(sorted(waiting))}")
    for file in sources:  # outside the game, sizes are asked of the scenario that was given
        uses = {name[-1] for name in file.crossing() if name[:2] == ("game", "tables")}
        if odd := uses - {"SMALL", "LARGE", "Size", "size_of", "tables_of"}:
            broken.append(f"{file.name} uses {', '.join(sorted(odd))} of game/tables.py")
    for name in ("searcher/gp.py", "searcher/strategy.py"):  # choosing orders knows neither the world nor learning
        (file,) = (file for file in sources if file.name == name)
        if odd := {module.split(".")[0] for module, _, _ in file.imports()} - {"base", "orders", "stats", "searcher"}:
            broken.append(f"{name} imports from {', '.join(sorted(odd))}")
    classes = {node.name for file in sources for node in file.nodes if isinstance(node, ast.ClassDef)}
    gone = {name for names in SHAPES.values() for name in names.split()} - classes
    return broken + [f"there is no class {name}: mend SHAPES in benchmarks/house.py" for name in sorted(gone)]


def twice(sources: list[File]) -> list[str]:
    """Return the functions and classes at the top level of two modules, whether or not they begin with an underscore."""
    where = defaultdict(list)
    for file in sources:
        for node in file.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                where[node.name.lstrip("_")].append(file.name)
    return [f"{name}: {', '.join(places)}" for name, places in sorted(where.items()) if len(places) > 1]


def walk(source: Path, sources: list[File], program: str) -> dict:
    """Return what a program enters and makes."""
    (module,) = (file.name for file in sources if re.search(r"^class SpecArrays\b", file.text, re.M))
    assert any(re.search(r"^class Workflow\b.*def __post_init__", file.text, re.M | re.S) for file in sources)
    counted = f"fixfirst.{module.removesuffix('.py').replace('/', '.')}.SpecArrays"
    environment = os.environ | {"PYTHONPATH": str(source.parent)}
    for words in ([program], [WALK, str(source), counted, program]):  # once before, so that nothing has to be compiled
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-P", "-c", *words]
            run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{program.strip()}\nfailed:\n{run.stderr}")
    return json.loads(run.stdout.split("walk ")[-1])


def figures(source: Path, sources: list[File], with_walk: bool) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Return every figure that has a budget, and where each comes from."""
    defined = {file.name.removesuffix(".py"): file.defines() for file in sources}
    crossed = sorted(
        {name for file in sources if not file.name.endswith("__init__.py") for name in file.crossing()}
        & {(*module.split("/"), name) for module, names in defined.items() for name in names}
    )
    ours = own_attributes(sources)
    where = {
        "names used across room walls": [".".join(name) for name in crossed],
        "imports upwards, or by string": [one for file in sources for one in file.upwards()],
        "`Any` in place of a type of ours": [one for file in sources for one in file.anys(ours)],
    }
    where |= {shape: names.split() for shape, names in SHAPES.items()}
    folders = {"src": source, "tests": source.parent.parent / "tests", "benchmarks": source.parent.parent / "benchmarks"}
    figures = {f"lines in {name}": lines(folder) for name, folder in folders.items()}
    figures |= {name: len(places) for name, places in where.items()}
    if with_walk:
        with ThreadPoolExecutor() as side_by_side:
            search, league = side_by_side.map(lambda program: walk(source, sources, program), (SEARCH, LEAGUE))
        figures |= {
            "a small search: views of settings": search["made"].get("views", 0),
            "a small search: `SpecArrays` made": search["made"].get("SpecArrays", 0),
            "a small search: workflows validated": search["made"].get("Workflow.__post_init__", 0),
            "a small search: files entered": search["files"],
            "a small search: functions and classes entered": search["functions"],
            "a league of 4 updates: calls between rooms": league["between"],
        }
    return figures, where


def looks(sources: list[File]) -> dict[str, list[str]]:
    """Return what has no budget, but says where to look."""
    bars = Counter(file.name for file in sources for line in file.text.splitlines() if re.match(r"\s*# -{5,}", line))
    raised = sum(isinstance(node, ast.Raise) for file in sources for node in file.nodes)
    words = Counter(
        word
        for file in sources
        for node in file.nodes
        for word in (
            getattr(node, "id", None),
            getattr(node, "arg", None),
            getattr(node, "attr", None),
            getattr(node, "name", None),
        )
        if word in DIALECT
    )
    count = sum(len(file.text.splitlines()) for file in sources)
    sizes = sorted(((len(file.text.splitlines()), file.name) for file in sources), reverse=True)
    return {
        "section bars, by file": [f"{number} in {name}" for name, number in bars.most_common()],
        "files over 400 lines": [f"{size} {name}" for size, name in sizes if size > 400],
        "raise, in 1,000 lines": [f"{1000 * raised / count:.1f}"],
        "dialect as identifiers": [f"{number} {word}" for word, number in words.most_common()],
        "names at the top of two modules": twice(sources),
    }


def budget_rows(document: str) -> dict[str, int]:
    """Return the budget, as the table of CONTRIBUTING.md says."""
    rows = re.findall(r"^\| ([^|]+?) \| ([\d,]+) \| [\d,]* \|$", document, re.M)
    return {name: int(most.replace(",", "")) for name, most in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=SOURCE, help="another checkout's src/fixfirst")
    parser.add_argument("--no-walk", action="store_true", help="leave out what a search and a league enter")
    parser.add_argument("--check", action="store_true", help="exit with 1 above the budget, or if a rule is broken")
    parser.add_argument("--list", action="store_true", help="list where the figures come from, and where else to look")
    parser.add_argument("--write", action="store_true", help="write today's figures into CONTRIBUTING.md")
    options = parser.parse_args()
    source = options.source.resolve()
    sources = [File(path, source) for path in files(source)]
    document = ROOT / "CONTRIBUTING.md"
    budget = budget_rows(document.read_text())
    counted, where = figures(source, sources, not options.no_walk)
    assert counted.keys() <= budget.keys(), f"CONTRIBUTING.md has no budget for {counted.keys() - budget.keys()}"
    above = [name for name, value in counted.items() if value > budget[name]]
    for name, value in counted.items():
        print(f"{name:44} {value:>7,}   at most {budget[name]:>7,}{'   ABOVE' if name in above else ''}")
    broken = broken_rules(sources)
    for text in broken:
        print(text)
    if options.list:
        for name, places in (where | looks(sources)).items():
            print(f"\n{name}: {len(places)}", *places, sep="\n  ")
    if options.write:
        text = document.read_text()
        for name, value in counted.items():
            text = re.sub(rf"^(\| {re.escape(name)} \| [\d,]+ \| )[\d,]*", rf"\g<1>{value:,}", text, flags=re.M)
        document.write_text(text)
    sys.exit(bool(options.check and (above or broken)))


if __name__ == "__main__":
    main()

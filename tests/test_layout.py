"""The tree reads in the order data flows, and the README tells the truth about it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import fixfirst as ff

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fixfirst"

# Groups from top to bottom: a module imports only from its own group and the groups above it.
GROUPS = (
    ("errors", "seeds", "network", "network_map", "actions", "workflow"),
    ("cage2",),
    ("cyborg",),
    ("compliance", "verdict", "rollout", "baselines"),
    ("files", "learner"),
    ("evaluate", "episode", "ranking"),
    ("search",),
    (
        "run_dir",
        "ledger",
        "progress",
        "trial",
        "train_run",
        "protocol",
        "search_config",
        "search_trial",
        "executor",
        "process_executor",
        "ray_executor",
        "experiment",
        "study",
        "settings",
        "search_view",
        "study_view",
        "runs",
    ),
    ("report",),
    ("watch",),
    ("__init__",),
    ("bench", "doctor"),
    ("commands",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, group in enumerate(GROUPS) for name in group}
# Modules of each folder, in reading order; the same rule inside it.
FOLDERS = {
    "cage2": ("state", "tables", "chance", "red_agents", "compiled", "kernel", "turn", "world", "vec_env", "conformance"),
    "learner": ("policy", "ppo", "config", "training", "checkpoint"),
    "search": ("gp", "strategy"),
    "report": (
        "read",
        "analysis",
        "sheet",
        "figures",
        "words",
        "document",
        "one_run",
        "several_runs",
        "page",
        "markdown",
        "build",
        "replay",
    ),
    "commands": ("shared", "learning", "searching", "judging", "showing", "checking"),
    "cyborg": ("processes", "checkout", "game", "variant", "cyborg_world", "workers", "cyborg_env", "policies", "recorder"),
}


def modules():
    return [path for path in SOURCE.rglob("*.py") if path.stat().st_size]


def imports(path):
    """Names below `fixfirst` that a file imports, as tuples of parts."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fixfirst":
            parts = tuple(node.module.split(".")[1:])
            for alias in node.names:
                is_module = (SOURCE.joinpath(*parts, alias.name).with_suffix(".py")).exists()
                yield (*parts, alias.name) if is_module or (not parts and (SOURCE / alias.name).is_dir()) else parts
        elif isinstance(node, ast.Import):
            yield from (tuple(a.name.split(".")[1:]) for a in node.names if a.name.split(".")[0] == "fixfirst")


def test_every_import_points_upwards():
    for path in modules():
        parts = path.relative_to(SOURCE).with_suffix("").parts
        for target in imports(path):
            name = target[0] if target else "__init__"
            assert RANK[name] <= RANK[parts[0]], f"{path.name} imports {'.'.join(target)}, which is further down"
            if parts[0] == name and len(target) > 1:
                reading = FOLDERS[name]
                assert reading.index(target[1]) < reading.index(parts[1]), f"{path.name} imports {target[1]}"


def test_search_knows_neither_the_world_nor_learning():
    for path in (SOURCE / "search").glob("*.py"):
        assert {target[0] for target in imports(path)} <= {"errors", "workflow", "ranking", "search"}


def test_a_report_needs_only_files():
    """It imports neither the world, nor learning, nor search; importing it brings neither PyTorch nor matplotlib."""
    allowed = {"errors", "files", "workflow", "ranking", "run_dir", "ledger", "progress", "network", "network_map", "report"}
    for path in (SOURCE / "report").glob("*.py"):
        assert {target[0] for target in imports(path)} <= allowed
    code = "import sys, fixfirst.reporter.build; sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_importing_fixfirst_does_not_import_torch():
    code = "import sys, fixfirst, fixfirst.searcher.strategy; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_readme_lists_every_source_file():
    tree = (ROOT / "README.md").read_text().split("```")
    listed = set(re.findall(r"(\w+\.py)", next(block for block in tree if block.strip().startswith("src/fixfirst/"))))
    assert listed == {path.name for path in modules()}


def test_public_names_exist_and_are_sorted():
    assert sorted(ff.__all__) == ff.__all__
    assert all(hasattr(ff, name) for name in ff.__all__)


def test_the_documents_name_only_functions_that_exist():
    """They say of each rule where it lives, as `file.py: function`."""
    text = "\n".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    named = re.findall(r"`(?:\w+/)*(\w+)\.py: ([\w., ]+)`", text)
    assert len(named) > 40
    for module, functions in named:
        (path,) = SOURCE.rglob(f"{module}.py")
        for function in functions.split(", "):
            name = function.split(".")[-1]
            assert re.search(rf"\b{name}\b", path.read_text()), f"{module}.py has no {name}"

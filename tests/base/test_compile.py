"""Machine code on disk: trusted only when undamaged, made by one process at a time, announced once, keyed by its sources."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest
from patience import PATIENCE_S

import fixfirst
from fixfirst.base import compile as machine_code
from fixfirst.base.errors import ConfigError
from fixfirst.game import chance

SOURCE = Path(fixfirst.__file__).parent

# A house with one room and tiny functions, in place of ours.
FUNCTIONS = """
from compiling import compiled
from scale import FACTOR
"""
FUNCTION = """
@compiled
def {name}(x):
    return FACTOR * x
"""
SCRIPT = """
import os, sys, time
import compiling as code  # a copy, for its place says what the package is
code.SOURCES = "game/tiny.py", "game/scale.py"
{prelude}
import tiny
for name in sys.argv[1:]:
    function = getattr(tiny, name)
    print(name, function(21), sum(function.stats.cache_misses.values()))
"""


class House:
    """Tiny compiled functions, and new processes that call them with a cache of their own."""

    def __init__(self, folder, names):
        self.folder, self.names = folder, names
        if (folder / "game").exists():
            return
        (folder / "game").mkdir(parents=True)
        shutil.copy(machine_code.__file__, folder / "game" / "compiling.py")
        self.scale(2)
        (folder / "game" / "tiny.py").write_text(FUNCTIONS + "".join(FUNCTION.format(name=name) for name in names))

    def scale(self, factor):
        (self.folder / "game" / "scale.py").write_text(f"FACTOR = {factor}\n")

    def start(self, prelude="", **environment):
        command = [sys.executable, "-c", SCRIPT.format(prelude=prelude), *self.names]
        given = {name: value for name, value in os.environ.items() if name != machine_code.ANNOUNCED}
        given |= {"PYTHONPATH": f"{self.folder / 'game'}:{SOURCE.parent}", "NUMBA_CACHE_DIR": str(self.folder / "cache")}
        given |= environment
        return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def call(self, **environment):
        """Each function's result, and whether it had to be compiled; and what was said on stderr."""
        return told(self.start(**environment))

    def files(self, ending="nbc"):
        return {path.name.split("-")[0].removeprefix("tiny."): path for path in self.folder.glob(f"cache/*/*/*.{ending}")}


def told(process):
    said, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, complained
    rows = (line.split() for line in said.splitlines())
    return {name: (int(value), int(misses)) for name, value, misses in rows}, complained


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("house") / "compiled"
    assert House(folder, ["double"]).call() == ({"double": (42, 1)}, MESSAGE)
    return folder


@pytest.fixture
def filled(compiled_once, tmp_path):
    """A house whose machine code is on disk."""
    return House(shutil.copytree(compiled_once, tmp_path / "house"), ["double"])


MESSAGE = "fixfirst: compiling, once per machine (less than a minute) ...\n"

DAMAGE = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "empty": lambda path: path.write_bytes(b""),
    "random": lambda path: path.write_bytes(os.urandom(20_000)),
    "flipped": lambda path: path.write_bytes(flip(path.read_bytes(), at=len(path.read_bytes()) // 2)),
    "flipped_checksum": lambda path: path.write_bytes(flip(path.read_bytes(), at=0)),
    "unreadable": lambda path: path.chmod(0),  # not for root, for whom it stays readable
    "directory": lambda path: (path.unlink(), path.mkdir(), (path / "file").write_text("something")),
    "missing": lambda path: path.unlink(),
}


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def test_a_damaged_file_is_replaced_whatever_the_damage(tmp_path):
    house = House(tmp_path, ["whole", "foreign", *DAMAGE])
    first, said = house.call()
    assert first == dict.fromkeys(house.names, (42, 1)) and said == MESSAGE

    files = house.files()
    for name, damage in DAMAGE.items():
        damage(files[name])
    files["foreign"].write_bytes(files["whole"].read_bytes())  # sound, but written for another place
    spared = {"whole"} | ({"unreadable"} if os.geteuid() == 0 else set())
    again, said = house.call()
    assert again == {name: (42, int(name not in spared)) for name in house.names} and said == MESSAGE
    assert house.call() == (dict.fromkeys(house.names, (42, 0)), "")
    assert not house.files("tmp")


def test_a_folder_that_cannot_be_made_means_compiling_in_every_process_and_children_do_not_say_it_again(tmp_path):
    house = House(tmp_path, ["double"])
    (tmp_path / "occupied").write_text("a file")
    assert house.call(NUMBA_CACHE_DIR=str(tmp_path / "occupied")) == ({"double": (42, 1)}, MESSAGE)
    said = {machine_code.ANNOUNCED: "1"}  # by the parent
    assert house.call(NUMBA_CACHE_DIR=str(tmp_path / "occupied"), **said) == ({"double": (42, 1)}, "")


def test_two_processes_at_the_same_time_compile_once_and_one_of_them_says_so(tmp_path):
    house = House(tmp_path, ["double"])
    meet = """
(code.PACKAGE / f"ready-{os.getpid()}").touch()
while len(list(code.PACKAGE.glob("ready-*"))) < 2: time.sleep(0.001)
"""
    outcomes = [told(process) for process in [house.start(meet) for _ in range(2)]]
    assert sorted(values["double"] for values, _ in outcomes) == [(42, 0), (42, 1)]
    assert sorted(said for _, said in outcomes) == ["", MESSAGE]


WAITING = """
lock = code.lock
def say_and_lock(file, wait=False):
    if wait: print("waits", flush=True)
    lock(file, wait=wait)
code.lock = say_and_lock
"""


def test_a_killed_process_leaves_no_lock_behind(tmp_path):
    house = House(tmp_path, ["double"])
    killed = house.start("def stop(*_): print('compiled', flush=True); time.sleep(3_600)\ncode._write = stop")
    assert killed.stdout.readline() == "compiled\n"
    waiting = house.start(WAITING)
    assert waiting.stdout.readline() == "waits\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert told(waiting)[0] == {"double": (42, 1)}


def test_what_numba_needs_for_compiling_is_not_loaded_with_machine_code(filled):
    broken = """
import numba.core.base, numba.core.typing.context
numba.core.base.BaseContext.refresh = numba.core.typing.context.BaseContext.refresh = None
"""
    assert told(filled.start(broken)) == ({"double": (42, 0)}, "")


def test_an_edit_in_a_file_of_constants_compiles_again_and_folders_that_nobody_used_for_a_month_are_deleted(filled):
    (folder,) = (filled.folder / "cache" / "fixfirst").iterdir()
    others = [folder.with_name(name) for name in ("kernel-0123456789abcdef", "game-0123456789abcdef", "of-somebody-else")]
    for other in others:
        other.mkdir()
    old = time.time() - 31 * 86_400
    for other in (others[0], others[2], folder):
        os.utime(other, (old, old))
    assert filled.call()[0] == {"double": (42, 0)}  # from disk: in use again
    filled.scale(3)
    assert filled.call()[0] == {"double": (63, 1)}
    assert [path.exists() for path in (folder, *others)] == [True, False, True, True]
    filled.scale(2)
    assert filled.call()[0] == {"double": (42, 0)}  # the first folder is still there


def test_a_user_without_a_home_has_a_private_temporary_folder(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    base = machine_code.cache_folder().parent.parent
    assert base == tmp_path / f"fixfirst-{os.getuid()}" and base.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("folder", "mode", "uid", "says"),
    [
        ("", 0o777, 0, "is writable for everybody"),
        ("fixfirst", 0o1777, 0, "is writable for everybody"),
        ("fixfirst", 0o755, 1, "belongs to somebody else"),
        ("", 0o1777, 0, None),  # as /tmp: only owners can rename what lies there
        ("", 0o755, 0, None),
    ],
)
@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_a_folder_that_others_write_is_refused(variable, folder, mode, uid, says, tmp_path, monkeypatch):
    base = tmp_path / ".cache"
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (base / "fixfirst").mkdir(parents=True)
    (base / folder).chmod(mode)
    monkeypatch.setenv(variable, str(tmp_path if variable == "HOME" else base))
    if uid:  # of somebody who is not this user
        monkeypatch.setattr(os, "getuid", lambda: os.stat(base).st_uid + uid)
        monkeypatch.setattr(machine_code, "_ROOT", -1)
    if says is None:
        assert machine_code.cache_folder().parent == base / "fixfirst"
    else:
        with pytest.raises(ConfigError, match=f"{says}: machine code there cannot be trusted"):
            machine_code.cache_folder()


def test_an_edit_in_a_room_spares_the_machine_code_of_the_rooms_before_it_another_numba_spares_none(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_code, "PACKAGE", tmp_path)
    monkeypatch.setattr(machine_code, "SOURCES", ("game/a.py", "play/b.py", "learner/c.py"))
    monkeypatch.setattr(machine_code, "ROOMS", ("game", "play", "learner"))
    monkeypatch.setattr(machine_code, "_fingerprint", machine_code._fingerprint.__wrapped__)  # nothing remembered
    for source in machine_code.SOURCES:
        (tmp_path / source).parent.mkdir()
        (tmp_path / source).write_text("X = 1\n")

    def folders():
        return [machine_code.cache_folder(room).name for room in machine_code.ROOMS]

    for number, source in enumerate(machine_code.SOURCES):
        before = folders()
        (tmp_path / source).write_text("X = 2\n")
        assert [old == new for old, new in zip(before, folders(), strict=True)] == [True] * number + [False] * (3 - number)
    before = folders()
    monkeypatch.setattr(numba, "__version__", "0.0.1")
    assert not set(before) & set(folders())


# Used by modules of constants, but not for their constants.
BESIDE = {f"base.{name}" for name in ("errors", "arguments", "distributions", "seeds")}
BESIDE |= {f"game.{name}" for name in ("documents", "images", "machine_table", "notes", "new_scenario", "reward")}
BESIDE |= {"game.scenario_reading", "game.scenario_writing", "orders.order"}


def fixfirst_imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fixfirst":
            for alias in node.names:
                yield node.module.partition(".")[2], alias.name, alias.asname or alias.name


def uses_numba(tree):
    imported = {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return "numba" in imported or {"compiled", "inlined", "called"} & {name for _, name, _ in fixfirst_imports(tree)}


def in_machine_code(tree):
    """The names that a module's compiled functions and constants use; of a module of constants, all names."""
    if not uses_numba(tree):
        return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    decorated = re.compile(r"\b(njit|compiled|inlined|called|intrinsic)\b")
    parts = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        or (isinstance(node, ast.FunctionDef) and any(decorated.search(ast.unparse(d)) for d in node.decorator_list))
    ]
    return {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}


def test_every_file_that_ends_up_in_machine_code_is_in_the_list_in_the_order_of_the_rooms():
    """Modules that use Numba, and the modules their compiled functions and constants take names from, and so on."""
    found, waiting = set(), [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    waiting = [path for path in waiting if uses_numba(ast.parse(path.read_text()))]
    while waiting:
        path = waiting.pop()
        found.add(path)
        tree = ast.parse(path.read_text())
        names = in_machine_code(tree)
        for module, name, known_as in fixfirst_imports(tree):
            if known_as in names and not {module, f"{module}.{name}"} & BESIDE:
                file = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
                source = file if file.exists() else SOURCE.joinpath(*module.split("."), f"{name}.py")
                waiting += [source] if source not in found else []
    assert {str(path.relative_to(SOURCE)) for path in found} == set(machine_code.SOURCES)
    assert machine_code.ROOMS == ("base", "game", "orders", "policy", "learner", "searcher")


def test_a_function_for_machine_code_only_says_so_when_python_calls_it():
    with pytest.raises(TypeError, match="size is called by compiled functions only"):
        chance.size(3)


def test_the_simulator_counts_as_compiled_without_what_not_everybody_uses(monkeypatch):
    class Entry:
        def __init__(self, source, *signatures):
            self.code, self.signatures = SimpleNamespace(source=source, on_disk=lambda: False), signatures

    rules, memory = Entry("game/rules.py", "for int64"), Entry("policy/remembering.py")
    monkeypatch.setattr(machine_code, "_ENTRY_POINTS", [rules, memory])
    assert machine_code.is_compiled()
    rules.signatures = ()
    assert not machine_code.is_compiled()

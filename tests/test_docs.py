"""Every command and every flag in the documents is tried, and every link leads somewhere.

Commands in fenced `sh` blocks run in the order in which they stand, in one folder that already holds the run which
`make search` writes. They are made small (`support/small.py`), but no flag is taken away, and a command that several
documents give runs once: two different runs need two names. Fenced `python` blocks run as programs.
Commands and flags inside the text are checked for existence only. A command of a program that is not known here is an
error: say in `NOT_RUN` or in `check` what to do with it.
"""

import contextlib
import glob
import inspect
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from enum import Enum
from functools import cache
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from small import ONE_CORE, SMALLER, with_smaller

import fixfirst as ff
from fixfirst.cli import main
from fixfirst.cli.app import app
from fixfirst.settings.presets import PRESETS
from fixfirst.settings.training import make_config

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("benchmarks/*.md")),
    *sorted(ROOT.glob("examples/*.md")),
    ROOT / "tests/conformance/README.md",
]
TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in DOCUMENTS}

# Flags for sizes that have no variable, added where a command leaves them out.
ADDED = {"search": ("workers",), "resume": ("workers",)} | dict.fromkeys(("record", "evaluate"), ("episodes",))
ADDED |= {"watch": ("episodes", "steps")}
SIZES = SMALLER | {"steps": "35"}
WITHOUT_REPORT = ("search", "resume")  # but for the run of `make search`
PLACEHOLDERS = {"RUN": "runs/search-b_line-0", "POLICY": "runs/search-b_line-0/best", "PATH": "cage-challenge-2"}
# Commands of other programs, and of ours that measure for minutes (`tests/cli/test_cli.py` runs it), need a cluster, or take
# PyTorch ten seconds (`tests/policy/test_export.py` runs it as it stands here).
NOT_RUN = ("git", "pip", ".venv/bin/pip", "cd", "export", "tensorboard", "sbatch", "srun", "ray", "kubectl", "docker")
NOT_RUN_MODULES = [["python", "-m", module] for module in ("pytest", "fixfirst.api.blue_agent")]
PARSED_ONLY = ("bench", "ray", "torch")
OTHER_FLAGS = {"--num-cpus", "--env-id"}  # in the text, of `ray start` and of CleanRL
CYBORG = os.environ.get("FIXFIRST_CYBORG")
# Without them, a block that imports them is not run; and blocks with these words would leave their mark on this process.
EXTRAS = {"onnxruntime", "sb3_contrib", "stable_baselines3", "torch"}
LEAVES_A_MARK = ("@ff.red_agent", "__main__", "import torch", "sb3", "onnx")
NEEDS_CYBORG = {"cage-challenge-2", "cyborg", "both"}  # words of commands that need it

OURS = ("fixfirst", ".venv/bin/fixfirst")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


class Command(NamedTuple):
    """One command of a document."""

    variables: dict[str, str]  # set for it alone
    words: list[str]
    target: str | None = None  # where `>` sends its output

    def __str__(self):
        return shlex.join(self.words)


def fenced(text, language):
    return [block for name, block in FENCED.findall(text) if name == language]


def shell_commands(script):
    """The commands of a shell script, one by one: continued lines joined, comments dropped, cut at && ; and |."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&;|")
        lexer.whitespace_split = True
        words = []
        for word in [*lexer, ";"]:
            if word in ("&&", ";", "|", "&"):
                if words:
                    yield command_of(words)
                words = []
            else:
                words.append(PLACEHOLDERS.get(word, word))


def command_of(words):
    variables = {}
    while (assignment := re.fullmatch(r"([A-Z]\w*)=(.*)", words[0])) and len(words) > 1:
        variables[assignment[1]] = assignment[2]
        words = words[1:]
    if ">" in words:
        return Command(variables, words[: words.index(">")], words[words.index(">") + 1])
    return Command(variables, words)


def inline_code(text):
    """What stands between single backticks, line breaks and table rules as blanks."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", FENCED.sub("", text))]


def imported(block):
    """The modules a Python block imports."""
    return re.findall(r"^(?:import|from) (\w+)", block, re.M)


def tables(text):
    """All tables, each a list of rows of cells; the first row is the header."""
    for block in re.findall(r"(?:^\|.*\|$\n?)+", FENCED.sub("", text), re.M):
        rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in block.strip().splitlines()]
        yield [rows[0], *rows[2:]]


def without_theirs(text):
    """The text without the first column of tables that begin with `theirs`: the flags of another system."""
    for table in tables(text):
        if table[0][0].startswith("theirs"):
            for row in table[1:]:
                text = text.replace(f"| {row[0]} |", "| |")
    return text


@cache
def flags_of(command):
    names = {name for argument in app[command].assemble_argument_collection() for name in argument.names}
    return {name for name in names if name.startswith("--")} | {"--help"}


@cache
def all_flags():
    commands = [command for command in app if not command.startswith("-")]
    return {flag for command in commands for flag in flags_of(command)} | {"--version", "--help-all"}


def flags_in(words):
    return [word.split("=")[0] for word in words if word.startswith("--")]


def check_flags(words):
    """A command of ours and its flags exist."""
    if len(words) > 1 and not words[1].startswith("-"):
        assert words[1] in set(app), f"there is no command `fixfirst {words[1]}`"
        for flag in flags_in(words):
            assert flag in flags_of(words[1]), f"`fixfirst {words[1]}` has no {flag}"
    else:
        assert set(flags_in(words)) <= all_flags(), words


@cache
def recipe(target):
    """Return what `make target` would run; nothing is run."""
    made = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, f"make {target}: {made.stderr}"
    return made.stdout


@cache
def help_of(script):
    """Return what a benchmark prints with --help."""
    assert (ROOT / script).exists(), f"{script} does not exist"
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.setattr(sys, "argv", [script, "--help"])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(ROOT / script), run_name="__main__")
    assert ended.value.code == 0
    return printed.getvalue()


def check_benchmark(words):
    """A script exists and knows its flags."""
    for flag in flags_in([*words, "--help"]):
        assert re.search(rf"{flag}\b", help_of(words[1])), f"{words[1]} has no {flag}"


def check_script(script):
    """A program for a cluster is not run: its syntax is right, and our flags in it exist."""
    read = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    for line in script.replace("\\\n", " ").splitlines():
        if line.startswith(OURS):
            assert set(flags_in(line.split())) <= all_flags(), line


def smaller(command, report=False):
    """Return the command's arguments and variables, with small numbers in place of large ones."""
    flag = {f"--{name.replace('_', '-')}": value for name, value in SMALLER.items()}
    arguments = command.words[1:]
    for i, word in enumerate(arguments[:-1]):
        if word in flag:
            arguments[i + 1] = flag[word]
    for name in ADDED.get(arguments[0], ()) if arguments else ():
        added = f"--{name.replace('_', '-')}"
        if added not in arguments:
            arguments += [added, SIZES[name]]
    if arguments and arguments[0] in WITHOUT_REPORT and not report:
        arguments.append("--no-report")
    found = [sorted(glob.glob(word))[:3] if "*" in word else [word] for word in arguments]
    return [word for words in found for word in words], command.variables | ONE_CORE


def run(command, done, report=False):
    """Run a command of ours in this process, unless it is among those done; it must succeed."""
    arguments, variables = smaller(command, report)
    if (asked := (*command.words, *command.variables.items())) in done:
        return
    done.add(asked)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        for name, value in variables.items():
            patch.setenv(name, value)
        with contextlib.redirect_stderr(io.StringIO()) as complaints:
            code = main(arguments)
    assert code == 0, f"`{command}`, run as `fixfirst {shlex.join(arguments)}`: {complaints.getvalue()}"
    if command.target:
        Path(command.target).write_text(printed.getvalue())


def check(command, missing, done):
    """Try a command. `missing`: files that commands not run would have written; `done`: commands that were run."""
    words = command.words
    if words[:3] == ["python", "-m", "fixfirst"]:
        command = Command(command.variables, ["fixfirst", *words[3:]], command.target)
        words = command.words
    if words[0] in OURS:
        check_flags(words)
        needs_cyborg = NEEDS_CYBORG & set(words) and not CYBORG
        if needs_cyborg or missing & set(words) or set(words) & set(PARSED_ONLY):
            missing |= {value for flag, value in pairwise(words) if flag == "--out"}
        else:
            run(command, done)
    elif words[0] == "make":
        for target in words[1:] or ["help"]:
            recipe(target)
    elif words[0] == "python" and words[1].startswith("benchmarks/"):
        check_benchmark(words)
    else:
        assert words[0] in NOT_RUN or words[:3] in NOT_RUN_MODULES, f"how is `{command}` to be tested?"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("fixfirst fly", "no command `fixfirst fly`"),
        ("fixfirst search --wings 2", "`fixfirst search` has no --wings"),
        ("fixfirst conform nothing.jsonl.gz", "nothing.jsonl.gz"),
        ("fixfirst train --workflow upwards", "upwards"),
        ("make believe", "make believe"),
        ("python benchmarks/nothing.py", "does not exist"),
        ("python benchmarks/startup.py --wings 2", "has no --wings"),
        ("rm -rf runs", "how is `rm -rf runs` to be tested?"),
    ],
)
def test_a_wrong_command_is_noticed(line, says, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (command,) = shell_commands(line)
    with pytest.raises(AssertionError, match=re.escape(says)):
        check(command, set(), set())


def test_a_wrong_flag_in_a_script_is_noticed():
    check_script("#!/bin/bash\nif true; then go=search; fi\nfixfirst $go --seed 1 &\n")
    with pytest.raises(AssertionError, match="--wings"):
        check_script("#!/bin/bash\nfixfirst $go --wings 1 &\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make the folder in which all commands run: files of the repository that they name, and the run of `make search`."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "tests/conformance").mkdir(parents=True)
    (folder / "tests/conformance/scenarios").symlink_to(ROOT / "tests/conformance/scenarios")
    (folder / "tests/conformance/sleep.jsonl.gz").symlink_to(ROOT / "tests/conformance/sleep.jsonl.gz")
    for name in ("benchmarks", "examples"):
        (folder / name).symlink_to(ROOT / name)
    if CYBORG:
        (folder / "cage-challenge-2").symlink_to(Path(CYBORG).resolve())
    (folder / "my_agents.py").write_text("")
    (search,) = (command for command in shell_commands(recipe("search")) if command.words[0] in OURS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(search, set(), report=True)
    assert (folder / PLACEHOLDERS["RUN"] / "best" / "policy.json").exists()  # the README says so
    return folder


@pytest.fixture(scope="module")
def done():
    """Commands and blocks of earlier documents."""
    return set()


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BROWSER", "true")  # a page to be shown is shown to nobody
    return folder


def documents_with(language):
    return [name for name, text in TEXTS.items() if fenced(text, language)]


@pytest.mark.parametrize("name", documents_with("sh"))
def test_every_command_runs(name, here, done):
    """TOML and YAML blocks come first: they are the files the commands read, named in their first line as `# name.toml`."""
    for block in (*fenced(TEXTS[name], "toml"), *fenced(TEXTS[name], "yaml")):
        if file := re.match(r"# (\w+\.(?:toml|yaml))\n", block):
            (here / file[1]).write_text(block)
    missing = set()
    for script in fenced(TEXTS[name], "sh"):
        for command in shell_commands(script):
            check(command, missing, done)


def test_the_script_for_a_cluster_is_right():
    check_script((ROOT / "examples/study.sbatch").read_text())


APART = """
import runpy, sys
for program in sys.argv[1:]:
    runpy.run_path(program, run_name="__main__")
    print("end of", program)
"""


def programs_of(name):
    """Return the Python blocks of a document that can run here, by the name of a file for each."""
    found = {}
    for number, block in enumerate(fenced(TEXTS[name], "python")):
        lacks = not all(map(find_spec, EXTRAS & set(imported(block)))) or ("cage-challenge-2" in block and not CYBORG)
        if not lacks:
            found[f"{Path(name).stem}{number}.py"] = block
    return found


def leaves_a_mark(block):
    return any(word in block for word in LEAVES_A_MARK)


@pytest.fixture(scope="module")
def apart(folder):
    """What blocks print that would leave their mark: all of them, one after the other, in one process of their own."""
    programs = {}
    for name in documents_with("python"):
        programs |= {program: block for program, block in programs_of(name).items() if leaves_a_mark(block)}
    for program, block in programs.items():
        (folder / program).write_text(block)
    command = [sys.executable, "-c", APART, *programs]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | ONE_CORE)
    assert ran.returncode == 0, ran.stderr
    return dict(zip(programs, re.split(r"^end of .*\n", ran.stdout, flags=re.M), strict=False))


def output_of(program):
    """Return what a Python program prints, run in this process."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        for name, value in ONE_CORE.items():
            patch.setenv(name, value)
        runpy.run_path(program)
    return printed.getvalue()


@pytest.mark.parametrize("name", documents_with("python"))
def test_every_python_block_runs(name, here, apart, done):
    """It prints what the comments after its print lines say, up to a colon. Searches are made small, as commands are."""
    for program, block in programs_of(name).items():
        if block in done:
            continue
        done.add(block)
        if leaves_a_mark(block):
            printed = apart[program]
        else:
            (here / program).write_text(with_smaller(block) if "ff.search(" in block else block)
            printed = output_of(program)
        expected = re.findall(r"^ *print\(.*\)  # ([^:\n]+)", block, re.M)
        assert not expected or printed.splitlines() == expected


def test_commands_stand_in_fenced_blocks():
    """An indented command would not be run by the tests above."""
    for name, text in TEXTS.items():
        found = re.findall(r"^ {4,}(?:\.venv/bin/)?(?:fixfirst|make|python) .*", FENCED.sub("", text), re.M)
        assert not found, f"{name}: {found}"


@pytest.mark.parametrize("name", TEXTS)
def test_commands_and_flags_in_the_text_exist(name):
    known = all_flags() | OTHER_FLAGS
    for code in inline_code(without_theirs(TEXTS[name])):
        if not re.match(r"(\.venv/bin/)?fixfirst |make \w|python benchmarks/|--\w", code):
            continue
        words = shlex.split(code)
        if words[0] in OURS:
            check_flags(words)
        elif words[0] == "make":
            recipe(words[1])
        elif words[0] == "python":
            check_benchmark(words)
        else:
            assert set(flags_in(words)) <= known, f"no command has {set(flags_in(words)) - known}"


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_to_files_and_headings(name):
    document = ROOT / name
    text = FENCED.sub("", TEXTS[name])
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), f"{name}: {link} does not exist"
        assert not anchor or anchor in headings(target), f"{name}: {path} has no heading #{anchor}"
    rooms = [path.name for path in (ROOT / "src/fixfirst").iterdir() if path.is_dir()]
    for code in inline_code(text):  # documents, programs and tests that are named without a link
        if re.fullmatch(r"(docs|tests|benchmarks)/[\w/.-]+|[\w-]+\.md", code):
            places = (document.parent, ROOT, ROOT / "docs")
            assert any((place / code).exists() for place in places), f"{name} names {code}, which does not exist"
        elif (file := re.match(r"(\w+)/[\w/]+\.py", code)) and file[1] in rooms:
            assert (ROOT / "src/fixfirst" / file[0]).exists(), f"{name} names {file[0]}, which does not exist"


def headings(path):
    """Return the anchors of a document's headings, as GitHub makes them."""
    lines = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_the_source_names_only_documents_that_exist():
    named = {name for path in (ROOT / "src").rglob("*.py") for name in re.findall(r"\bdocs/\w+\.md", path.read_text())}
    assert named and all((ROOT / name).exists() for name in named)


def test_the_site_shows_every_page_and_every_figure_is_used():
    site = (ROOT / "mkdocs.yml").read_text()
    assert sorted(re.findall(r"([\w-]+\.md)$", site, re.M)) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    links = re.compile(r"""(?:\]\(|src="|srcset=")([^)"\s]+\.(?:png|svg))""")
    shown = {Path(link).stem for text in TEXTS.values() for link in links.findall(text)}
    assert shown == {path.stem for path in (ROOT / "docs/figures").iterdir()}


def test_lines_of_documents_are_short():
    for path in (*DOCUMENTS, ROOT / "CHANGELOG.md"):
        assert not [line for line in path.read_text().splitlines() if len(line) > 125], path


def default_of(flag):
    """The value of a setting of `fixfirst search` that nobody gives."""
    name = flag.removeprefix("--").replace("-", "_")
    return getattr(ff.search_config(separate=True), name)


def values_in(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_flag_tables_give_the_right_defaults():
    """Tables with the columns `ours` and `our default`, and tables of one flag's values, of which one is `(default)`."""
    checked = 0
    for document, text in TEXTS.items():
        for header, *rows in tables(text):
            if "our default" in header:
                for row in rows:
                    flag, default = values_in(row[header.index("ours")]), values_in(row[header.index("our default")])
                    if flag and default:
                        assert str(default_of(flag[0])) == default[0].replace(",", ""), f"{document}: {flag[0]}"
                        checked += 1
            elif (flag := values_in(header[0])) and flag[0].startswith("--"):
                (default,) = (values_in(row[0])[0] for row in rows if "(default)" in row[0])
                assert default_of(flag[0]) == default
                checked += 1
    assert checked >= 5


def test_option_tables_are_the_signature_of_make_vec():
    found = [rows for text in TEXTS.values() for header, *rows in tables(text) if header == ["option", "values"]]
    parameters = {name: p.default for name, p in inspect.signature(ff.VecCage2).parameters.items()}
    parameters |= {name: field.default for name, field in ff.Game.model_fields.items()}
    assert found
    for option, values in chain.from_iterable(found):
        (name,) = values_in(option)
        assert name in parameters, f"make_vec has no {name}"
        if stated := re.search(r"`([^`]+)` \(default\)", values):
            default = parameters[name]
            assert stated[1] == (default.name.lower() if isinstance(default, Enum) else default)


def test_the_table_of_presets_is_the_code():
    (rows,) = (rows for header, *rows in tables(TEXTS["docs/method.md"]) if header[0] == "preset")
    assert [values_in(row[0])[0] for row in rows] == list(PRESETS)
    for name, envs, episodes, epochs, returns, entropy, alignment in rows:
        config = make_config(values_in(name)[0])
        preset = config.ppo
        assert (int(envs), int(episodes), int(epochs)) == (preset.num_envs, preset.episodes_per_update, preset.epochs)
        assert returns.startswith("GAE") == (preset.returns == "gae")
        assert float(entropy) == preset.ent_coef
        if alignment != "none":  # of a preset that knows no order
            assert alignment == config.keep

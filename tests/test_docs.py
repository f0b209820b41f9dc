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
from itertools import pairwise
from pathlib import Path

import pytest
from small import ONE_CORE, SMALLER, with_smaller

import fixfirst as ff
from fixfirst.cli import main
from fixfirst.cli.app import app
from fixfirst.settings.presets import PRESETS
from fixfirst.settings.training import make_config

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/fixfirst"
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "tests/conformance/README.md")]
DOCUMENTS += sorted(path for folder in ("docs", "benchmarks", "examples") for path in (ROOT / folder).glob("*.md"))
TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in DOCUMENTS}

SMALL_FLAGS = {f"--{name.replace('_', '-')}": value for name, value in SMALLER.items()}
# For sizes that have no variable, where a command leaves them out.
ADDED = {"search": {"--workers": "1"}, "resume": {"--workers": "1"}, "record": {"--episodes": "4"}}
ADDED |= {"evaluate": {"--episodes": "4"}, "watch": {"--episodes": "4", "--steps": "35"}}
PLACEHOLDERS = {"RUN": "runs/search-b_line-0", "POLICY": "runs/search-b_line-0/best", "PATH": "cage-challenge-2"}
# Commands of other programs, and of ours that measure for minutes (`tests/cli/test_cli.py` runs it), need a cluster, or take
# PyTorch ten seconds (`tests/policy/test_export.py` runs it as it stands here).
NOT_RUN = ("git", "pip", ".venv/bin/pip", "cd", "export", "tensorboard", "sbatch", "srun", "ray", "kubectl", "docker")
NOT_RUN_MODULES = [["python", "-m", module] for module in ("pytest", "fixfirst.api.blue_agent")]
PARSED_ONLY = {"bench", "ray", "torch"}
OTHER_FLAGS = {"--num-cpus", "--env-id"}  # in the text, of `ray start` and of CleanRL
CYBORG = os.environ.get("FIXFIRST_CYBORG")
EXTRAS = {"onnxruntime", "sb3_contrib", "stable_baselines3", "torch"}  # without them, a block that imports them is not run
NEEDS_CYBORG = {"cage-challenge-2", "cyborg", "both"}  # words of commands that need it

OURS = ("fixfirst", ".venv/bin/fixfirst")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def fenced(text, language):
    return [block for name, block in FENCED.findall(text) if name == language]


def shell_commands(script):
    """The words of each command of a shell script: continued lines joined, comments dropped, cut at && ; and |."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&;|")
        lexer.whitespace_split = True
        words = []
        for word in [*lexer, ";"]:
            if word not in ("&&", ";", "|", "&"):
                words.append(PLACEHOLDERS.get(word, word))
            elif words:
                yield words
                words = []


def inline_code(text):
    """What stands between single backticks, line breaks and table rules as blanks."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", FENCED.sub("", text))]


def tables(text):
    """All tables, each a list of rows of cells; the first row is the header."""
    for block in re.findall(r"(?:^\|.*\|$\n?)+", FENCED.sub("", text), re.M):
        rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in block.strip().splitlines()]
        yield [rows[0], *rows[2:]]


@cache
def flags_of(command):
    names = {name for argument in app[command].assemble_argument_collection() for name in argument.names}
    return {name for name in names if name.startswith("--")} | {"--help"}


@cache
def all_flags():
    commands = [command for command in app if not command.startswith("-")]
    return {flag for command in commands for flag in flags_of(command)} | {"--version", "--help-all"}


def flags_in(words):
    return {word.split("=")[0] for word in words if word.startswith("--")}


def check_flags(words):
    """A command of ours and its flags exist."""
    if len(words) > 1 and not words[1].startswith("-"):
        assert words[1] in set(app), f"there is no command `fixfirst {words[1]}`"
        for flag in flags_in(words):
            assert flag in flags_of(words[1]), f"`fixfirst {words[1]}` has no {flag}"
    assert flags_in(words) <= all_flags(), words


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


def run(words, variables=(), *, report=False):
    """Run a command of ours in this process, with small numbers in place of large ones; it must succeed."""
    arguments = [file for word in words[1:] for file in (sorted(glob.glob(word))[:3] if "*" in word else [word])]
    for i, flag in enumerate(arguments[:-1]):
        arguments[i + 1] = SMALL_FLAGS.get(flag, arguments[i + 1])
    for flag, value in ADDED.get(words[1], {}).items() if len(words) > 1 else ():
        arguments += [] if flag in arguments else [flag, value]
    arguments += ["--no-report"] if words[1:2] in (["search"], ["resume"]) and not report else []
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        for name, value in (ONE_CORE | dict(variables)).items():
            patch.setenv(name, value)
        with contextlib.redirect_stderr(io.StringIO()) as complaints:
            code = main(arguments)
    assert code == 0, f"`{shlex.join(words)}`, run as `fixfirst {shlex.join(arguments)}`: {complaints.getvalue()}"


def check(words, missing, done):
    """Try a command. `missing`: files that commands not run would have written; `done`: commands that were run."""
    given, variables = words, []
    while len(words) > 1 and (variable := re.fullmatch(r"([A-Z]\w*)=(.*)", words[0])):
        variables.append(variable.groups())
        words = words[1:]
    if words[:3] == ["python", "-m", "fixfirst"]:
        words = ["fixfirst", *words[3:]]
    if words[0] in OURS:
        check_flags(words)
        if (NEEDS_CYBORG & {*words} and not CYBORG) or (missing | PARSED_ONLY) & {*words}:
            missing |= {value for flag, value in pairwise(words) if flag == "--out"}
        elif given not in done:
            done.append(given)
            run(words, variables)
    elif words[0] == "make":
        for target in words[1:] or ["help"]:
            recipe(target)
    elif words[0] == "python" and words[1].startswith("benchmarks/"):
        for flag in flags_in([*words, "--help"]):
            assert re.search(rf"{flag}\b", help_of(words[1])), f"{words[1]} has no {flag}"
    else:
        assert words[0] in NOT_RUN or words[:3] in NOT_RUN_MODULES, f"how is `{shlex.join(words)}` to be tested?"


WRONG = {
    "fixfirst fly": "no command `fixfirst fly`",
    "fixfirst search --wings 2": "`fixfirst search` has no --wings",
    "fixfirst conform nothing.jsonl.gz": "nothing.jsonl.gz",
    "make believe": "make believe",
    "python benchmarks/nothing.py": "does not exist",
    "python benchmarks/startup.py --wings 2": "has no --wings",
    "rm -rf runs": "how is `rm -rf runs` to be tested?",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_command_is_noticed(line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=re.escape(WRONG[line])):
        check(next(shell_commands(line)), set(), [])


def test_the_script_for_a_cluster_is_right():
    """It is not run: its syntax is right, and our flags in it exist."""
    script = ROOT / "examples/study.sbatch"
    assert subprocess.run(["bash", "-n", script]).returncode == 0
    commands = [words for words in shell_commands(script.read_text()) if words[0] in OURS]
    assert commands and all(flags_in(words) <= all_flags() for words in commands)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make the folder in which all commands run: files of the repository that they name, and the run of `make search`."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "tests/conformance").mkdir(parents=True)
    for name in ("tests/conformance/scenarios", "tests/conformance/sleep.jsonl.gz", "benchmarks", "examples"):
        (folder / name).symlink_to(ROOT / name)
    if CYBORG:
        (folder / "cage-challenge-2").symlink_to(Path(CYBORG).resolve())
    (folder / "my_agents.py").write_text("")
    (search,) = (words for words in shell_commands(recipe("search")) if words[0] in OURS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(search, report=True)
    assert (folder / PLACEHOLDERS["RUN"] / "best" / "policy.json").exists()  # the README says so
    return folder


@pytest.fixture(scope="module")
def done():
    """Commands of earlier documents."""
    return []


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


ONE_BY_ONE = """
import runpy, sys
for program in sys.argv[1:]:
    print("begin of", program)
    runpy.run_path(program, run_name="__main__")
"""


def programs_of(name):
    """Return the Python blocks of a document that can run here, by the name of a file for each."""
    programs = {}
    for number, block in enumerate(fenced(TEXTS[name], "python")):
        needs = EXTRAS & {*re.findall(r"^(?:import|from) (\w+)", block, re.M)}
        if all(map(find_spec, needs)) and (CYBORG or "cage-challenge-2" not in block):
            programs[f"{Path(name).stem}{number}.py"] = block
    return programs


@pytest.fixture(scope="module")
def printed(folder):
    """What each different Python block prints: all of them, one after the other, in one process. Searches are made small."""
    programs = {block: file for name in documents_with("python") for file, block in programs_of(name).items()}
    for block, file in programs.items():
        (folder / file).write_text(with_smaller(block) if "ff.search(" in block else block)
    command, variables = [sys.executable, "-c", ONE_BY_ONE, *programs.values()], ONE_CORE | {"BROWSER": "true"}
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | variables)
    assert ran.returncode == 0, ran.stderr
    return dict(zip(programs, re.split(r"^begin of .*\n", ran.stdout, flags=re.M)[1:], strict=True))


@pytest.mark.parametrize("name", documents_with("python"))
def test_every_python_block_runs_and_prints_what_its_comments_say(name, printed):
    """What stands behind its print lines, up to a colon."""
    for block in programs_of(name).values():
        expected = re.findall(r"^ *print\(.*\)  # ([^:\n]+)", block, re.M)
        assert not expected or printed[block].splitlines() == expected


def test_commands_stand_in_fenced_blocks_and_lines_are_short():
    """An indented command would not be run by the tests above."""
    for name, text in (TEXTS | {"CHANGELOG.md": (ROOT / "CHANGELOG.md").read_text()}).items():
        assert not [line for line in text.splitlines() if len(line) > 125], name
        found = re.findall(r"^ {4,}(?:\.venv/bin/)?(?:fixfirst|make|python) .*", FENCED.sub("", text), re.M)
        assert not found, f"{name}: {found}"


@pytest.mark.parametrize("name", TEXTS)
def test_commands_and_flags_in_the_text_exist(name):
    theirs = re.compile(r"^\| theirs .*\n(?:\|.*\n)+", re.M)  # tables that begin with the flags of another system
    text = theirs.sub(lambda table: re.sub(r"^\|[^|]*\|", "| |", table[0], flags=re.M), TEXTS[name])
    for code in inline_code(text):
        if re.match(r"(\.venv/bin/)?fixfirst |make \w|python benchmarks/", code):
            words = shlex.split(code)
            check_flags(words) if words[0] in OURS else check(words, set(), [])
        elif code.startswith("--"):
            assert flags_in(code.split()) <= all_flags() | OTHER_FLAGS, code


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_to_files_and_headings(name):
    document = ROOT / name
    text = FENCED.sub("", TEXTS[name])
    for link in re.findall(r"\]\((?!\w+://)([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), f"{name}: {link} does not exist"
        assert not anchor or anchor in headings(target), f"{name}: {path} has no heading #{anchor}"
    rooms = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir())
    for code in inline_code(text):  # files that are named without a link, also as `file.py: function`
        file, _, names = code.partition(": ")
        if re.fullmatch(rf"(docs|tests|benchmarks)/[\w/.-]+|({rooms})/[\w/]+\.py|[\w-]+\.md", file):
            there = [place / file for place in (document.parent, ROOT, ROOT / "docs", SOURCE) if (place / file).exists()]
            assert there, f"{name} names {file}, which does not exist"
            for function in re.findall(r"\w+(?=,|$)", names):
                assert re.search(rf"\b{function}\b", there[0].read_text()), f"{name}: {file} has no {function}"


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


def values_in(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_flag_tables_give_the_right_defaults():
    """Tables with the columns `ours` and `our default`."""
    config, found = ff.search_config(separate=True), [rows for text in TEXTS.values() for rows in tables(text)]
    rows = [
        map(values_in, row[header.index("ours") :]) for header, *rows in found if "our default" in header for row in rows
    ]
    stated = [(flags[0], defaults[0]) for flags, defaults in rows]
    assert len(stated) >= 5
    for flag, default in stated:
        assert str(getattr(config, flag.removeprefix("--").replace("-", "_"))) == default.replace(",", ""), flag


def test_the_option_table_is_the_signature_of_make_vec():
    (rows,) = (rows for text in TEXTS.values() for header, *rows in tables(text) if header == ["option", "values"])
    parameters = {name: p.default for name, p in inspect.signature(ff.VecCage2).parameters.items()}
    parameters |= {name: field.default for name, field in ff.Game.model_fields.items()}
    for option, values in rows:
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

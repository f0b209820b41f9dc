"""Files are data: no run, policy or settings file has code run, or anything written outside (SECURITY.md)."""

import functools
import json
import os
import shutil
import tomllib

import pytest
import tomli_w
from run_folder import resign

import fixfirst as ff
from fixfirst.base import files
from fixfirst.cli import main
from fixfirst.game.attacker_files import SHIPPED

QUIET = {"quiet": True, "workers": 1, "report": False}


@pytest.fixture
def run(searched, tmp_path, monkeypatch):
    """A search that is not finished."""
    monkeypatch.delenv("FIXFIRST_CYBORG", raising=False)
    folder = shutil.copytree(searched, tmp_path / "run")
    (folder / "trials.csv").unlink()
    shutil.rmtree(folder / "trials")
    return folder


@pytest.fixture
def training(trained, tmp_path):
    """A training that is not finished."""
    folder = shutil.copytree(trained, tmp_path / "runs" / "train")
    (folder / "result.json").unlink()
    return folder


@pytest.fixture
def bomb(run):
    """A package that looks like CybORG, in the run, and leaves a mark when it is imported."""
    package = run / "CybORG"
    (package / "Shared" / "Scenarios").mkdir(parents=True)
    (package / "Shared" / "Scenarios" / "Scenario2.yaml").touch()
    (package / "CybORG.py").touch()
    mark = run.parent / "imported"
    (package / "__init__.py").write_text(f"open({str(mark)!r}, 'w')\n")
    return mark


def test_a_run_does_not_name_the_code_that_resume_runs(run, training, bomb):
    for folder in (run, training):
        path = folder / "config.toml"
        config = path.read_text().replace('backend = "simulator"', f'backend = "cyborg"\ncyborg = {str(run)!r}')
        assert "cyborg" in config
        path.write_text(config)
        with pytest.raises(ff.RunDirError, match="was changed since the run began"):
            ff.resume(folder, quiet=True)
        resign(folder)
        with pytest.raises(ff.CyborgError, match="CybORG was not found"):
            ff.resume(folder, quiet=True)
    assert not bomb.exists()


def forged(folder, name, key, code):
    """A file of a run says `code` under this key, and fits its checksum."""
    path = folder / name
    if name == "config.toml":
        path.write_text(tomli_w.dumps(tomllib.loads(path.read_text()) | {key: code}))
        resign(folder)
    else:
        *above, last = key.split(".")
        document = files.read_json(path)
        functools.reduce(dict.__getitem__, above, document)[last] = code
        del document[files.CHECKSUM]
        path.write_text(json.dumps(files.with_checksum(document)))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(("config.toml", key) for key in ("red_agent", "from_policy", "scenario", "against", "preset", "start")),
        *(("manifest.json", key) for key in ("options.from_policy", "options.red_agent", "command")),
        *(("policy.json", key) for key in ("workflow", "scenario", "config", "config.red_agent", "memory", "action_set")),
        *(("exploit/red.json", key) for key in ("scenario", "against", "config", "start")),
    ],
)
def test_an_agent_that_a_file_names_is_never_run(training, tmp_path, monkeypatch, capsys, name, key):
    """Only what is typed is code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil.py").write_text("open('ran', 'w')\nclass Agent:\n    pass\n")
    shutil.copytree(SHIPPED / "noise", training / "exploit")
    forged(training, "manifest.json", "options", {"from_policy": None})
    forged(training, name, key, "evil.py:Agent" if len(key) % 2 else "evil:Agent")
    few = ["--episodes", "2", "--steps", "2"]
    for command in (
        ["resume", str(training), "--quiet"],
        ["runs", str(training.parent)],
        ["evaluate", str(training), "--red-agent", "sleep", *few, "--quiet"],
        ["export", str(training), "--to", "numpy", "--out", str(tmp_path / "p.npz")],
        ["evaluate", "sleep", "--red-agent", str(training / "exploit"), *few, "--quiet"],
    ):
        assert main(command) in (0, 2), command
    assert not (tmp_path / "ran").exists()
    assert "Traceback" not in "".join(capsys.readouterr())


def test_a_run_goes_on_only_under_the_configuration_it_was_begun_with(run, training):
    for folder, old in ((run, "gate_episodes = 20"), (training, "gate_episodes = 500")):
        path = folder / "config.toml"
        path.write_text(path.read_text().replace(old, "gate_episodes = 21"))
        with pytest.raises(ff.RunDirError, match=r"config.toml: was changed since the run began"):
            ff.resume(folder, quiet=True)
        path.write_text(path.read_text().replace("gate_episodes = 21", old))
        ff.resume(folder, **(QUIET if folder == run else {"quiet": True}))


def test_a_changed_digit_of_a_trainings_result_is_noticed(trained, tmp_path, capsys):
    folder = shutil.copytree(trained, tmp_path / "runs" / "train")
    path = folder / "result.json"
    path.write_text(path.read_text().replace('"mean": -', '"mean": -1', 1))
    with pytest.raises(ff.RunDirError, match=r"result.json: cannot be read .its document_sha256 is not"):
        ff.load_run(folder)
    capsys.readouterr()
    assert main(["runs", str(folder.parent)]) == 0 and "damaged" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["search", "train"])
def test_a_settings_file_does_not_name_code(run, bomb, tmp_path, capsys, command):
    for number, settings in enumerate(({"cyborg": str(run)}, {"game": {"cyborg": str(run)}})):
        path = tmp_path / f"{number}.toml"
        path.write_text(tomli_w.dumps({"backend": "cyborg", **settings}))
        assert main([command, "--config", str(path), "--out", str(tmp_path / "out")]) == 2
        said = "cyborg names code to be run, which no file may; say it with --cyborg or FIXFIRST_CYBORG"
        assert said in capsys.readouterr().err
    assert not bomb.exists() and not (tmp_path / "out").exists()


def test_where_code_lies_is_not_written_down(tmp_path):
    config = ff.make_config(backend="cyborg", cyborg="somewhere")
    assert config.game.cyborg == "somewhere" and "somewhere" not in config.model_dump_json()


def test_a_pipe_in_place_of_a_log_is_refused(run):
    os.mkfifo(run / "trials.csv")
    with pytest.raises(ff.RunDirError, match=r"trials\.csv: cannot be read"):
        ff.resume(run, **QUIET)


def test_pages_are_not_written_through_a_link(searched, tmp_path, capsys):
    run = shutil.copytree(searched, tmp_path / "run")
    shutil.rmtree(run / "replays")
    (tmp_path / "mine").mkdir()
    (run / "replays").symlink_to(tmp_path / "mine")
    assert main(["report", str(run), "--replays"]) == 2
    assert "replays: is a link" in capsys.readouterr().err and not list((tmp_path / "mine").iterdir())


# ---------------------------------------------------------------- before anything is begun


@pytest.mark.parametrize("verb", [ff.search, ff.train])
def test_what_cannot_begin_leaves_nothing_behind(tmp_path, monkeypatch, verb):
    monkeypatch.delenv("FIXFIRST_CYBORG", raising=False)
    with pytest.raises(ff.CyborgError, match="CybORG was not found"):
        verb(out=tmp_path / "run", backend="cyborg", quiet=True)
    assert not (tmp_path / "run").exists()


def test_resume_says_what_changed_before_it_goes_on(run, capsys):
    resign(run, versions={"python": "2.7"}, source_sha256="of yesterday")
    ff.resume(run, **QUIET)
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "was begun elsewhere" in line)
    assert "so numbers may differ: python 3" in line and line.endswith("; another source code")

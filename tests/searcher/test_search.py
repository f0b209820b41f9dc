"""`fixfirst search` and `resume`: the budget, the books, and the same bytes for any number of workers and interruptions."""

import csv
import errno
import json
import os
import resource
import shutil
import signal
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from held import Holds, checkpoint
from run_folder import resign, write_config, write_log
from searches import (
    EASY,
    LONG,
    RANDOM,
    NoView,
    checkpoints,
    end,
    launch,
    ledger,
    one_line,
    outcome,
    policies,
    recorded,
    rows,
    settings_file,
    training_log,
    wait_for,
)

from fixfirst.base.errors import WorkerError
from fixfirst.base.jobs import Finished, InlineScheduler
from fixfirst.base.seeds import stream_seed
from fixfirst.cli import main
from fixfirst.orders.order import all_workflows
from fixfirst.policy.policy_file import load_policy
from fixfirst.runs.csv_logs import CsvLog
from fixfirst.runs.layout import WARMUP_KEY
from fixfirst.runs.manifest import read_settings
from fixfirst.runs.rows import ChoiceRow, EpisodeRow, SessionRow, Status, Trial, UpdateRow
from fixfirst.runs.sessions import status
from fixfirst.searcher import jobs as searcher_jobs, published
from fixfirst.searcher.published import PublishedSearch
from fixfirst.searcher.strategy import NON_COMPLIANT, Strategy, StrategyConfig, TrialOutcome
from fixfirst.searcher.study import begin_study, open_search, run_searches
from fixfirst.settings.search import search_config
from fixfirst.stats.across_seeds import read_trials

SILENT = ["--quiet", "--no-report", "--workers", "1"]


def start(folder, settings, *arguments, workers=1, report=False, expect=0):
    """`fixfirst search`, driven from this process."""
    options = ["--config", str(settings_file(folder.parent, settings)), "--workers", str(workers), "--quiet"]
    options += [] if report else ["--no-report"]
    assert main(["search", "--out", str(folder), *options, *arguments]) == expect
    return folder


def resume(folder, *arguments, expect=0):
    assert main(["resume", str(folder), *SILENT, *arguments]) == expect
    return folder


def run_with(scheduler, folder, settings, view=None):
    """A search with a scheduler of the test's own."""
    (search,) = begin_study([search_config(**{"separate": True} | settings)], folder).searches
    assert run_searches([search], scheduler, view or NoView(), interrupt=False, folder=folder)
    return search


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished search: three random orders, then the GP's."""
    return start(tmp_path_factory.mktemp("search") / "run", EASY, "--log-episodes", "--tensorboard", report=True)


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "copy")


# ---------------------------------------------------------------- budget and rounds


def search_with(trials=(), **settings):
    """A search that has used some episodes, for its sums only."""
    config = search_config(**{"separate": True, "warmup_episodes": 0, "min_episodes": 0, "ppo": {"num_envs": 10}} | settings)
    past = [Trial(id=i, workflow="", episodes=n, status=Status.NON_COMPLIANT) for i, n in enumerate(trials)]
    return PublishedSearch(config, Path("nowhere"), past)


@pytest.mark.parametrize(
    ("settings", "used", "budgets"),
    [
        ({"total_episodes": 1000, "max_episodes": 100}, [], [100, 100]),
        ({"total_episodes": 1000, "max_episodes": 105}, [], [100, 100]),  # whole updates of 10
        ({"total_episodes": 1000, "max_episodes": 100}, [100, 750], [70, 70]),  # 150 left, 75 each
        ({"total_episodes": 1000, "max_episodes": 100}, [100, 885], [10]),  # 15 left: one update
        ({"total_episodes": 1000, "max_episodes": 100}, [100, 891], []),  # 9 left
        ({"total_episodes": 1000, "max_episodes": 100, "round_size": 3}, [100, 850], [10, 10, 10]),  # 50 left, 16 each
        ({"total_episodes": 1000, "max_episodes": 100, "n_workflows": 3}, [10, 10], [100]),
        ({"total_episodes": 1000, "max_episodes": 100, "n_workflows": 2}, [10, 10], []),
        ({"total_episodes": 1000, "max_episodes": 100, "min_episodes": 60}, [800, 100], [100]),  # two of 50 would be in vain
        ({"total_episodes": 1000, "max_episodes": 100, "min_episodes": 55}, [800, 90], [100]),  # 110 left; 55 means 60
        ({"total_episodes": 1000, "max_episodes": 100, "min_episodes": 60}, [800, 150], []),
        ({"total_episodes": 300, "max_episodes": 100, "warmup_episodes": 1000}, [], [100, 100]),  # a third warms up
        ({"total_episodes": 300, "max_episodes": 100, "warmup_episodes": 35}, [200], [30, 30]),  # 30 of the warm-up count
    ],
)
def test_budgets_of_a_round(settings, used, budgets):
    assert search_with(used, **settings).next_budgets() == budgets


class MadeUp:
    """An executor without training: every trial breaks its order, after some part of its budget."""

    workers = 1

    def __init__(self, seed):
        self._rng, self._jobs = np.random.default_rng(seed), []

    def submit(self, key, job, argument):
        self._jobs.append((key, argument))

    def wait(self, on_progress):
        if not self._jobs:
            return None
        key, job = self._jobs.pop(self._rng.integers(len(self._jobs)))  # in any order
        update = job.config.ppo.episodes_per_update
        episodes = update * int(self._rng.integers(1, job.config.total_episodes // update + 1))
        facts = {"id": job.number, "workflow": job.config.workflow, "episodes": episodes}
        return Finished(key, Trial(status=Status.NON_COMPLIANT, return_mean=-1.0, return_se=0.5, **facts))


@pytest.mark.parametrize("seed", range(12))
def test_the_budget_is_never_exceeded_and_used_but_for_less_than_one_trial(tmp_path, seed):
    rng = np.random.default_rng(seed)
    envs = int(rng.choice([1, 4, 7]))
    least = int(rng.choice([0, 30]))
    settings = {
        "total_episodes": int(rng.integers(300, 900)),
        "max_episodes": int(rng.integers(40, 90)),
        "round_size": int(rng.integers(1, 6)),
        "min_episodes": least,
        "warmup_episodes": 0,
        "strategy": "random",
        "ppo": {"num_envs": envs},
    }
    search = run_with(MadeUp(seed), tmp_path / "run", settings)
    used = sum(int(row["episodes"]) for row in ledger(tmp_path / "run"))
    assert used == search.used <= settings["total_episodes"]
    assert settings["total_episodes"] - used < max(-(-least // envs) * envs, envs)
    assert [int(row["id"]) for row in ledger(tmp_path / "run")] == list(range(len(search.trials)))


def test_a_real_search_uses_its_budget_exactly(run):
    """48 episodes: 8 of warm-up, 40 in trials of whole updates of 4."""
    used = [int(row["episodes"]) for row in ledger(run)]
    assert sum(used) == 40 and all(4 <= episodes <= 12 and episodes % 4 == 0 for episodes in used)
    assert load_policy(run / "warmup").facts["episodes"] == 8


def test_it_stops_after_n_workflows(tmp_path):
    folder = start(tmp_path / "run", RANDOM, "--n-workflows", "3")
    assert len(ledger(folder)) == 3 and rows(folder / "gp_sampling_log.csv")[-1]["round"] == "2"


@pytest.mark.parametrize("settings", [{"min_episodes": 10}, {"stop_when_compliant": False}])  # 10: 3 updates of 4
def test_no_trial_ends_before_min_episodes_or_when_it_is_not_to_stop(tmp_path, settings):
    folder = start(tmp_path / "run", RANDOM | settings, "--n-workflows", "2")
    assert [(row["status"], row["episodes"]) for row in ledger(folder)] == [("accepted", "12")] * 2


# ---------------------------------------------------------------- the books


def test_the_files_have_the_promised_columns(run):
    for name, columns in (
        ("trials.csv", Trial.columns()),
        ("gp_sampling_log.csv", ChoiceRow.columns()),
        ("training_log.csv", UpdateRow.columns()),
        ("episodes.csv", EpisodeRow.columns()),
        ("runtime.csv", SessionRow.columns()),
    ):
        lines = (run / name).read_text().splitlines()
        assert lines[0] == ",".join((*columns, "checksum"))
        assert {len(cells) for cells in csv.reader(lines)} == {len(columns) + 1}, name
    names = {"config.toml", "manifest.json", "trials.csv", "gp_sampling_log.csv", "training_log.csv", "episodes.csv", "tb"}
    assert {path.name for path in run.iterdir()} == names | {
        "trials",
        "warmup",
        "best",
        "runtime.csv",
        "end.json",
        "report.html",
        "replays",
        ".lock",
    }


def test_a_row_of_the_ledger_says_what_its_trial_showed(run):
    for number, row in enumerate(ledger(run)):
        folder = run / "trials" / f"{number:04d}"
        assert row["id"] == str(number) and row["policy"] == f"trials/{number:04d}"
        shown = json.loads((folder / "result.json").read_text())["evaluation"]
        assert float(row["return_mean"]) == pytest.approx(shown["mean"], abs=1e-6)
        assert float(row["compliance"]) == pytest.approx(shown["compliance"]["compliance"]["value"], abs=1e-6)
        policy = load_policy(folder)
        assert str(policy.workflow) == row["workflow"] and policy.facts["sha256"] == row["policy_sha256"]
        assert policy.facts["notes"]["accepted"] == (row["status"] == "accepted")
        assert float(row["return_low"]) < float(row["return_mean"]) < float(row["return_high"])


def test_the_training_log_counts_all_episodes_of_the_search(run):
    """Every update is one row; the warm-up's 8 episodes come before the first."""
    log = training_log(run)
    assert [int(row["Total_Episodes_Sampled"]) for row in log] == list(range(12, 49, 4))
    updates = [(row["Workflow_ID"], row["Update"]) for row in log]
    assert updates == [(row["id"], str(u + 1)) for row in ledger(run) for u in range(int(row["updates"]))]
    for row in log:
        assert float(row["Total_Reward"]) == pytest.approx(float(row["Env_Reward"]) + float(row["Alignment_Bonus"]))


def test_the_episode_log_has_every_training_episode_once(run):
    log = rows(run / "episodes.csv")
    expected = [(row["id"], str(e + 1)) for row in ledger(run) for e in range(int(row["episodes"]))]
    assert [(row["Workflow_ID"], row["Episode"]) for row in log] == expected
    for row in log:
        assert float(row["Env_Reward"]) + float(row["Alignment_Bonus"]) == pytest.approx(float(row["Total_Reward"]))
    for update in training_log(run):
        own = [r for r in log if (r["Workflow_ID"], r["Update"]) == (update["Workflow_ID"], update["Update"])]
        assert np.mean([float(r["Env_Reward"]) for r in own]) == pytest.approx(float(update["Env_Reward"]), abs=1e-6)
        assert np.mean([int(r["Repairs"]) for r in own]) == pytest.approx(float(update["Avg_Fixes"]), abs=1e-6)


def test_every_choice_can_be_redone_from_the_ledger(run):
    config = read_settings(run / "config.toml")
    by_name = {str(workflow): workflow for workflow in all_workflows()}
    choices, trials = rows(run / "gp_sampling_log.csv"), ledger(run)
    assert [choice["workflow"] for choice in choices] == [trial["workflow"] for trial in trials]
    assert [choice["how"] for choice in choices[:4]] == ["random", "random", "random", "ucb"]
    for first in sorted({int(choice["round"]) for choice in choices}):
        strategy = Strategy(
            StrategyConfig(seed=stream_seed(config["seed"], "search"), beta=config["gp_beta"], initial_orders=3)
        )
        for trial in trials[:first]:
            numbers = float(trial["return_mean"]), float(trial["return_se"])
            accepted = trial["status"] == "accepted"
            strategy.tell(by_name[trial["workflow"]], TrialOutcome.compliant(*numbers) if accepted else NON_COMPLIANT)
        logged = [choice for choice in choices if int(choice["round"]) == first]
        for choice, row in zip(strategy.ask(len(logged)), logged, strict=True):
            assert (str(choice.workflow), choice.how) == (row["workflow"], row["how"])
            for place, candidate in enumerate(choice.top, start=1):
                assert row[f"top{place}_workflow"] == str(candidate.workflow)
                for number in ("ucb", "mean", "std"):
                    assert float(row[f"top{place}_{number}"]) == pytest.approx(getattr(candidate, number), abs=1e-6)


def test_best_holds_the_policy_of_the_rankings_first_order(run):
    first = open_search(run).standings().ranking.rows[0].workflow
    assert load_policy(run).workflow == load_policy(run / "best").workflow == first


def test_an_order_that_was_lucky_once_is_judged_by_all_its_trials():
    """A: -10 and -20, together -15. B: -12 twice, so B is first, though A had the highest single return."""
    a, b = list(all_workflows())[:2]
    search = search_with()
    for number, (workflow, mean) in enumerate(((a, -10.0), (b, -12.5), (a, -20.0), (b, -11.5))):
        numbers = {"return_mean": mean, "return_se": 1.0, "episodes": 10}
        search.tell(Trial(id=number, workflow=str(workflow), status=Status.ACCEPTED, **numbers))
    found = search.standings()
    assert [(row.workflow, row.mean) for row in found.ranking.rows] == [(b, pytest.approx(-12)), (a, pytest.approx(-15))]
    assert found.best.id == 3


# ---------------------------------------------------------------- what is chosen, and from where it starts


def test_orders_that_broke_the_gate_keep_their_numbers_and_wait_until_all_others_were_tried(tmp_path):
    """120 orders at 1 episode each, and 10 more: the last 10 are second tries of different orders."""
    settings = {"total_episodes": 130, "max_episodes": 1, "round_size": 5, "min_episodes": 0, "warmup_episodes": 0}
    run_with(MadeUp(0), tmp_path / "run", settings | {"ppo": {"num_envs": 1}, "gp_beta": 1.0})
    tried = [row["workflow"] for row in ledger(tmp_path / "run")]
    assert len(set(tried[:120])) == 120 and len(set(tried[120:])) == 10
    assert all(row["status"] == "non_compliant" and row["return_mean"] == "-1.0" for row in ledger(tmp_path / "run"))


def test_the_gp_does_not_choose_a_non_compliant_order_again(tmp_path):
    """A gate that a good part of the orders fail."""
    folder = start(tmp_path / "run", EASY | {"compliance_threshold": 0.3, "total_episodes": 72, "max_episodes": 4})
    failed = [row["workflow"] for row in ledger(folder) if row["status"] == "non_compliant"]
    accepted = [row for row in ledger(folder) if row["status"] == "accepted"]
    assert len(failed) >= 3 and len(accepted) >= 3 and len(set(failed)) == len(failed)
    assert all(row["return_mean"] and row["compliance_bound"] and row["policy_sha256"] for row in ledger(folder))


def kendall(a, b):
    """Pairs of unit types that two orders name the other way round."""
    a, b = a.split(" > "), b.split(" > ")
    return sum((a.index(x) < a.index(y)) != (b.index(x) < b.index(y)) for x, y in combinations(a, 2))


@pytest.mark.parametrize("rule", ["last", "nearest", "best", "none"])
def test_the_parent_is_recorded(tmp_path, rule):
    """Parents are looked for in the rounds before: trials of one round have the same past."""
    folder = start(tmp_path / "run", RANDOM | {"compliance_threshold": 0.3}, "--inherit", rule)
    trials = ledger(folder)
    parents = []
    for trial, choice in zip(trials, rows(folder / "gp_sampling_log.csv"), strict=True):
        past = [row for row in trials[: int(choice["round"])] if row["status"] == "accepted"]
        by_rule = {
            "last": past[-1:],
            "nearest": sorted(past[::-1], key=lambda row: kendall(row["workflow"], trial["workflow"])),
            "best": sorted(past, key=lambda row: -float(row["return_mean"])),
            "none": [],
        }
        parents.append(by_rule[rule][0]["id"] if by_rule[rule] else "")
    assert [trial["parent"] for trial in trials] == parents
    assert any(parents) == (rule != "none")
    search = open_search(folder)
    next_order = next(iter(all_workflows()))
    parent = search.parent_of(next_order)
    expected = folder / "warmup" if parent is None else folder / "trials" / f"{parent.id:04d}"
    assert search.job(99, next_order, 4, parent).parent_policy == expected


def test_the_first_trials_start_from_the_given_policy(tmp_path, monkeypatch):
    """With a vanishing learning rate and no softening a trial's policy is its parent's. Resumed from another folder, too."""
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "--out", "parent", "--n-envs", "4", "--max-steps", "10", "--total-episodes", "8"]
    assert main([*arguments, "--workflow", "all", "--keep", "penalty", "--quiet", "--no-tensorboard"]) == 0
    settings = RANDOM | {
        "initial_logit_scale": 1.0,
        "ppo": {"num_envs": 4, "learning_rate": 1e-9},
        "compliance_threshold": 0.99,
    }
    folder = start(tmp_path / "run", settings, "--from", "parent", "--n-workflows", "3")
    assert not (folder / "warmup").exists()
    for number in range(3):
        for name, array in load_policy(tmp_path / "parent").weights.items():
            assert np.allclose(load_policy(folder / "trials" / f"{number:04d}").weights[name], array, atol=1e-6)
    before = policies(folder)
    shutil.rmtree(folder / "trials" / "0002")
    (folder / "trials.csv").write_text("".join((folder / "trials.csv").read_text().splitlines(keepends=True)[:-1]))
    monkeypatch.chdir("/")
    assert policies(resume(folder)) == before


def test_published_presets_search_as_they_were_published(tmp_path, capsys):
    # Episodes before the gate may end a trial, and at most.
    limits = {"sequential": (0, 50), "hybrid": (0, 50), "parallel-25": (250, 1250), "parallel-100": (0, 10_000)}
    for preset, limit in limits.items():
        config = search_config(preset)
        training = config.training
        assert (config.warmup_budget, training.min_episodes, training.total_episodes) == (0, *limit)
        assert training.keep == "delta" and training.gate_rule == "latest"
    config = search_config(separate=True)
    assert (config.warmup_budget, config.training.min_episodes) == (20_000, 2_000)
    assert config.training.total_episodes == 10_000
    assert search_config("hybrid", max_episodes=70).training.total_episodes == 70
    start(tmp_path / "run", {"max_steps": 3, "test_episodes": 5}, "--preset", "original", expect=2)
    one_line(capsys, "--preset original knows no order; it cannot search for one")
    short = {"max_steps": 3, "test_episodes": 5, "n_workflows": 2, "max_episodes": 4}
    folder = start(tmp_path / "sequential", short, "--preset", "sequential")
    assert [row["episodes"] for row in ledger(folder)] == ["4", "4"]  # 3 steps never give 10 repairs


# ---------------------------------------------------------------- settings


def test_the_config_of_a_run_starts_the_same_search(run, tmp_path):
    again = tmp_path / "again"
    assert main(["search", "--out", str(again), "--config", str(run / "config.toml"), *SILENT]) == 0
    assert (again / "config.toml").read_bytes() == (run / "config.toml").read_bytes()
    assert outcome(again) == outcome(run)


def test_the_command_line_beats_the_environment_which_beats_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("FIXFIRST_SEED", "2")
    monkeypatch.setenv("FIXFIRST_ROUND_SIZE", "3")
    folder = start(tmp_path / "run", RANDOM | {"seed": 1, "round_size": 1, "n_workflows": 1}, "--seed", "3")
    config = read_settings(folder / "config.toml")
    assert (config["seed"], config["round_size"], config["n_workflows"]) == (3, 3, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--strategy", "guess"],
            "Invalid value for --strategy: must be one of gp_ucb, random, exhaustive, together, got 'guess'",
        ),
        (["--preset", "fast"], "--preset must be one of sequential, hybrid, "),
        (["--inherit", "all"], "Invalid value for --inherit: must be one of last, nearest, best, none, got 'all'"),
        (["--workers", "-1"], "--workers must be at least 0, got -1"),
        (["--workers", "two"], "--workers"),
        (["--total-episodes", "0"], "--total-episodes must be at least 1, got 0"),
        (["--total-episodes", "3"], "--total-episodes 3 leaves 3 after the warm-up, less than one trial of 4 episodes"),
        (
            ["--max-episodes", "3"],
            "no trial could pass the gate: it opens after 4 episodes (--min-episodes 0), and a trial has at most 3 (--max",
        ),
        (["--max-episodes", "8", "--min-episodes", "9"], "it opens after 12 episodes (--min-episodes 9)"),
        (["--total-episodes", "12", "--min-episodes", "12"], "--total-episodes 12 leaves 8 after the warm-up"),
        (["--round-size", "0"], "--round-size must be at least 1, got 0"),
        (["--n-workflows", "0"], "--n-workflows must be at least 1, got 0"),
        (["--gp-beta", "-1"], "--gp-beta must be at least 0"),
        (["--compliance-threshold", "1.5"], "--compliance-threshold must be at most 1"),
        (["--red-agent", "green"], "green"),
        (["--from", "nowhere"], "nowhere: holds no policy"),
        (["--workflow", "user"], "--workflow"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(tmp_path, capsys, arguments, says):
    path = settings_file(tmp_path, EASY)
    assert main(["search", "--out", str(tmp_path / "run"), "--config", str(path), "--quiet", *arguments]) == 2
    one_line(capsys, says)
    assert not (tmp_path / "run").exists()


def test_a_search_chooses_its_workflows_itself(tmp_path, capsys):
    start(tmp_path / "run", EASY | {"workflow": "user > op_host > op_server > enterprise > defender"}, expect=2)
    one_line(capsys, "a search chooses the workflows itself: leave workflow at 'all'")


# ---------------------------------------------------------------- what is printed


def test_json_output_is_one_document_also_when_resumed(tmp_path, capsys):
    folder = start(tmp_path / "run", RANDOM, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["run"] == str(folder) and told["episodes"] == 48
    assert [trial["id"] for trial in told["trials"]] == [int(row["id"]) for row in ledger(folder)]
    assert list(told["trials"][0]) == list(Trial.columns())
    means = [row["mean"] for row in told["ranking"]]
    assert means == sorted(means, reverse=True) and told["ranking"][0]["maybe_best"] is True
    resume(folder, "--json")
    assert json.loads(capsys.readouterr().out) == told


def test_the_table_marks_the_orders_that_cannot_be_told_from_the_best(tmp_path, capsys):
    """Three orders with known returns: -10 and -10.5 are alike at a standard error of 1, -40 is not."""
    folder = start(tmp_path / "run", RANDOM, "--n-workflows", "3")
    trials, path = read_trials(folder), folder / "trials.csv"
    path.unlink()
    known = {"status": Status.ACCEPTED, "return_se": 1.0}
    write_log(path, Trial, [replace(t, return_mean=m, **known) for t, m in zip(trials, (-40.0, -10.0, -10.5), strict=True)])
    table = ledger(folder)
    capsys.readouterr()
    resume(folder)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 trials, 3 orders tried, ")
    ranked = zip((table[1], table[2], table[0]), ("may be best", "may be best", "worse"), strict=True)
    for line, (row, verdict) in zip(lines[2:], ranked, strict=False):
        assert line.split("-")[0].strip() == row["workflow"] and f"]  {verdict}" in line
    verdict = f"2 of 3 orders cannot be told from the best at 95 % confidence; highest: {table[1]['workflow']}"
    assert any(line.startswith(verdict) for line in lines)
    assert lines[-2:] == [f"best policy: {folder / 'best'}", f"next:        fixfirst evaluate {folder / 'best'}"]


def test_when_nothing_passes_the_gate_it_says_what_to_do(tmp_path, capsys):
    folder = start(tmp_path / "run", RANDOM, "--compliance-threshold", "0.999", "--n-workflows", "2")
    out = capsys.readouterr().out
    assert "No order passed the gate: raise --total-episodes or --max-episodes, or lower --compliance-threshold." in out
    assert not (folder / "best").exists() and {row["status"] for row in ledger(folder)} == {"non_compliant"}
    assert all(row["return_mean"] and row["compliance"] for row in ledger(folder))


# ---------------------------------------------------------------- workers and interruptions, for real


def test_the_driver_killed_again_and_again_ends_with_the_bytes_of_an_undisturbed_run(tmp_path, undisturbed, capsys):
    """Killed in the warm-up, in the middle of a round, and with two workers in the middle of the next."""
    orders = [row["workflow"] for row in ledger(undisturbed)]
    assert len(orders) == 4 and "accepted" in {row["status"] for row in ledger(undisturbed)}
    folder, holds = tmp_path / "run", Holds(tmp_path / "holds")
    arguments = ["search", "--out", folder, "--config", settings_file(tmp_path, LONG)]
    for workers, parts, points in (
        (1, ["warmup"], [checkpoint(2)]),
        (1, ["trials/0001"], [checkpoint(2, orders[1])]),
        (2, ["trials/0002", "trials/0003"], [checkpoint(2, order) for order in orders[2:]]),
    ):
        holds.at(*points)
        process = launch(*arguments, "--workers", workers, holds=holds)
        wait_for(process, lambda parts=parts: holds.waiting() == len(parts))
        process.kill()
        assert end(process) == ("", "") and process.returncode == -signal.SIGKILL
        assert all(checkpoints(folder / part) == 2 for part in parts)
        arguments = ["resume", folder]
    assert recorded(folder) == 2
    resume(folder)
    assert capsys.readouterr().err == "fixfirst: going on after 2 trials, 72 of 120 episodes used\n"
    assert outcome(folder) == outcome(undisturbed)
    assert not list(folder.rglob("checkpoint-*")) and not list(folder.rglob("*.tmp"))


def test_ctrl_c_stops_cleanly_says_how_to_go_on_and_nobody_else_may_use_the_run(tmp_path, undisturbed, capsys):
    """In the warm-up with two workers, which must stop at once and save; then within a round in one process."""
    folder, holds = tmp_path / "run", Holds(tmp_path / "holds")
    arguments = ["search", "--out", folder, "--config", settings_file(tmp_path, LONG)]
    first = ledger(undisturbed)[1]["workflow"]
    for workers, part, point in (
        (2, folder / "warmup", checkpoint(2)),
        (1, folder / "trials" / "0001", checkpoint(2, first)),
    ):
        holds.at(point)
        process = launch(*arguments, "--workers", workers, holds=holds)
        wait_for(process, lambda: holds.waiting() == 1)
        resume(folder, expect=2)
        one_line(capsys, f"{folder} is in use by another process")
        assert status(folder) == "running"
        start(folder, LONG, expect=2)
        one_line(capsys, f"{folder} exists already; go on with it: fixfirst resume {folder}")
        os.killpg(process.pid, signal.SIGINT)
        assert end(process) == ("", f"fixfirst: interrupted; go on with: fixfirst resume {folder}\n")
        assert process.returncode == 130 and status(folder) == "interrupted"
        assert checkpoints(part) and not (part / "policy.json").exists()  # the end of the training was not waited for
        arguments = ["resume", folder]
    resume(folder)
    assert outcome(folder) == outcome(undisturbed) and status(folder) == "finished"
    assert [row["outcome"] for row in rows(folder / "runtime.csv")] == ["interrupted", "interrupted", "finished"]


# ---------------------------------------------------------------- what a crash may leave behind


def cut_ledger(folder, number):
    path = folder / "trials.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[: 1 + number]))


def test_wherever_the_ledger_was_cut_the_search_ends_the_same(run, tmp_path, monkeypatch):
    """Finished trials are read from their folders: not one is trained again, and even their seconds stay."""
    monkeypatch.setattr(searcher_jobs, "train_in", None)
    for number in range(len(ledger(run))):
        folder = shutil.copytree(run, tmp_path / str(number))
        cut_ledger(folder, number)
        resume(folder)
        for name in ("trials.csv", "gp_sampling_log.csv", "training_log.csv", "episodes.csv"):
            assert (folder / name).read_bytes() == (run / name).read_bytes(), (number, name)


def lose_trials(copy):
    cut_ledger(copy, 3)
    for number in (2, 3):
        shutil.rmtree(copy / "trials" / f"{number:04d}")


def cut_last_lines(copy):
    for name in ("trials.csv", "gp_sampling_log.csv", "training_log.csv", "episodes.csv"):
        data = (copy / name).read_bytes()
        (copy / name).write_bytes(data[: data[:-1].rfind(b"\n") + 10])


def change_result(copy, **changes):
    """Of the first trial, before it is in the ledger."""
    path = copy / "trials" / "0000" / "result.json"
    document = json.loads(path.read_text())
    document["trial"]["return_mean"] += 1
    path.write_text(json.dumps(document | changes))
    cut_ledger(copy, 0)


def change_log(copy):
    """Of the first trial: its rows are copied when the trial is recorded."""
    cut_ledger(copy, 0)
    path = copy / "trials" / "0000" / "training_log.csv"
    header, first, *others = path.read_text().splitlines(keepends=True)
    cells, place = first.split(","), header.split(",").index("Entropy")
    cells[place] = str(float(cells[place]) + 1)
    path.write_text("".join([header, ",".join(cells), *others]))


@pytest.mark.parametrize(
    "damage",
    [lose_trials, cut_last_lines, change_result, lambda copy: change_result(copy, job="0" * 64), change_log],
    ids=["lost trials", "half-written lines", "changed result", "result of another job", "changed log"],
)
def test_what_a_trial_left_counts_only_as_it_was_written_else_it_is_trained_again_to_the_same_bytes(run, copy, damage):
    damage(copy)
    resume(copy)
    assert outcome(copy) == outcome(run)
    assert rows(copy / "episodes.csv") == rows(run / "episodes.csv")


def test_a_finished_search_can_be_shown_again(run, copy, capsys):
    resume(copy)
    assert "cannot be told from the best" in capsys.readouterr().out
    assert (copy / "trials.csv").read_bytes() == (run / "trials.csv").read_bytes()


def damage_cell(copy):
    path = copy / "trials.csv"
    path.write_text(path.read_text().replace("accepted,", "", 1))


def swap_rows(copy):
    path = copy / "trials.csv"
    header, first, second, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([header, second, first, *rest]))


def shrink_budget(copy):
    path = copy / "config.toml"
    path.write_text(path.read_text().replace("total_episodes = 48", "total_episodes = 24", 1))
    resign(copy)


def ledger_is_a_folder(copy):
    (copy / "trials.csv").unlink()
    (copy / "trials.csv").mkdir()


def lock_is_a_folder(copy):
    (copy / ".lock").unlink()
    (copy / ".lock").mkdir()


def other_columns(copy):
    (copy / "gp_sampling_log.csv").write_text("a,b\n1,2\n")


def manifest(text):
    return lambda copy: (copy / "manifest.json").write_text(text)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (manifest('{"schema": 7, "kind": "search"}'), "is a run of another version (schema 7, this version reads 2)"),
        (manifest('{"schema": 1}'), "manifest.json: cannot be read (it does not say what kind of run this is)"),
        (lambda copy: (copy / "manifest.json").unlink(), "is not a run directory (manifest.json is missing)"),
        (lambda copy: (copy / "config.toml").unlink(), "config.toml: no such file"),
        (lambda copy: (copy / "config.toml").write_text("seed ="), "config.toml: cannot be read as TOML"),
        (lambda copy: (copy / "config.toml").write_text("seed = 1"), "config.toml: was changed since the run began"),
        (lambda copy: write_config(copy, {"sed": 1}), "unknown setting 'sed'; did you mean 'seed'?"),
        (damage_cell, "trials.csv: damaged (line 2 does not fit its checksum, or is of another run)"),
        (swap_rows, "trials.csv: damaged (line 2 does not fit its checksum"),
        (shrink_budget, "trials.csv has more trials than config.toml allows"),
        (other_columns, "gp_sampling_log.csv: has other columns than this version writes"),
        (ledger_is_a_folder, "trials.csv: cannot be read (Is a directory)"),
        (lock_is_a_folder, "cannot be written (Is a directory); mend that, then: fixfirst resume"),
    ],
)
def test_a_damaged_run_is_one_line_and_stays_as_it_is(copy, capsys, damage, says):
    damage(copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    resume(copy, expect=2)
    one_line(capsys, says)
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_a_folder_that_cannot_be_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    path = settings_file(tmp_path, EASY)
    for place in (tmp_path / "file", tmp_path / "file" / "run", "/proc/fixfirst-run"):
        assert main(["search", "--out", str(place), "--config", str(path), *SILENT]) == 2
        one_line(capsys, f"{place}: cannot be written (")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    start(tmp_path / "mine", EASY, expect=2)
    one_line(capsys, "exists already; choose another --out")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_in_a_training_is_one_line_and_the_search_can_go_on(run, tmp_path, capsys, workers):
    """Files may not grow beyond 20 kB: the first checkpoint does not fit. Workers inherit the limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        folder = start(tmp_path / "run", EASY, "--log-episodes", workers=workers, expect=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    one_line(capsys, f"{folder}: cannot be written (File too large); mend that, then: fixfirst resume {folder}")
    resume(folder)
    assert outcome(folder) == outcome(run)


def test_a_disk_that_is_full_when_a_trial_is_recorded_loses_nothing(run, tmp_path, capsys, monkeypatch):
    """The third row of the ledger cannot be flushed, neither at once nor when the file is closed."""
    written = []

    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class FullDisk(CsvLog):
        def __init__(self, path, *arguments):
            super().__init__(path, *arguments)
            self.path = path

        def sync(self):
            if self.path.name == "trials.csv":
                written.append(1)
                if len(written) == 3:
                    full()
            super().sync()

        def close(self):
            super().close()
            if len(written) == 3:
                full()

    with monkeypatch.context() as patched:
        patched.setattr(published.rows, "CsvLog", FullDisk)
        folder = start(tmp_path / "run", EASY, "--log-episodes", expect=2)
    one_line(capsys, f"cannot be written (No space left on device); mend that, then: fixfirst resume {folder}")
    resume(folder)
    assert outcome(folder) == outcome(run)


# ---------------------------------------------------------------- workers that die


class Dying(InlineScheduler):
    """Loses the workers of some jobs, each as often as told."""

    def __init__(self, deaths):
        super().__init__()
        self._deaths = dict(deaths)

    def wait(self, on_progress):
        key = self._jobs[0][0] if self._jobs else None
        number = None if key is None else key[1]
        if self._deaths.get(number, 0) == 0:
            return super().wait(on_progress)
        self._deaths[number] -= 1
        self._jobs.popleft()
        return Finished(key, died="killed by signal 9")


def test_a_trial_whose_worker_dies_once_is_tried_again_and_nothing_changes(run, tmp_path):
    view = NoView()
    run_with(Dying({WARMUP_KEY: 1, 0: 1, 4: 1}), tmp_path / "run", EASY | {"log_episodes": True}, view)
    assert outcome(tmp_path / "run") == outcome(run)
    again = "{}: its worker is gone (killed by signal 9); trying again"
    assert view.complaints == [again.format(name) for name in ("warm-up", "trial 0", "trial 4")]


def test_a_trial_whose_worker_dies_twice_has_failed_and_the_search_goes_on(tmp_path):
    """Trial 1 of the first round is lost; its 12 episodes count as used, and its order is not tried again soon."""
    search = run_with(Dying({1: 2}), tmp_path / "run", EASY)
    trials = ledger(tmp_path / "run")
    lost = trials[1]
    assert (lost["status"], lost["episodes"], lost["return_mean"], lost["policy"]) == ("failed", "12", "", "")
    assert search.used == 48 == 8 + sum(int(row["episodes"]) for row in trials) and len(trials) >= 4
    assert lost["workflow"] not in [row["workflow"] for row in trials[2:]]
    assert open_search(tmp_path / "run").trials == search.trials
    assert not any(row["Workflow_ID"] == "1" for row in training_log(tmp_path / "run"))


def test_a_search_whose_workers_always_die_ends(tmp_path, capsys):
    run_with(Dying(dict.fromkeys(range(100), 2)), tmp_path / "run", RANDOM)
    assert [row["status"] for row in ledger(tmp_path / "run")] == ["failed"] * 4  # 40 episodes: 12, 12, then 8 and 8
    resume(tmp_path / "run")
    assert "No order passed the gate" in capsys.readouterr().out


def test_a_warm_up_whose_worker_dies_twice_ends_the_search(tmp_path):
    (search,) = begin_study([search_config(**RANDOM)], tmp_path / "run").searches
    with pytest.raises(WorkerError, match="warm-up: its worker died again and again"):
        run_searches([search], Dying({WARMUP_KEY: 2}), NoView(), interrupt=False, folder=search.folder)


# ---------------------------------------------------------------- what is counted on is checked


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def best_trial(folder):
    return open_search(folder).standings().best


def flip_policy(folder, copy):
    flip(folder / "policy.safetensors")


def take_warmup(folder, copy):
    for name in ("policy.safetensors", "policy.json"):
        shutil.copy(copy / "warmup" / name, folder / name)


@pytest.mark.parametrize("damage", [flip_policy, take_warmup])
def test_a_damaged_or_another_policy_is_not_put_into_best_and_what_is_lost_is_said(copy, capsys, damage):
    best = best_trial(copy)
    shutil.rmtree(copy / "best")
    damage(copy / best.policy, copy)
    resume(copy, expect=2)
    said = f"not the one whose sha256 stands in trials.csv: the policy of the best order, {best.workflow}, is lost"
    assert f"{said}; the ranking is not" in capsys.readouterr().err
    assert not (copy / "best").exists()


def test_a_damaged_best_is_put_back(run, copy):
    flip(copy / "best" / "policy.safetensors")
    resume(copy)
    assert policies(copy) == policies(run)


@pytest.mark.parametrize("name", ["training_log.csv", "gp_sampling_log.csv"])
@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_log_that_was_cut_is_noticed(copy, capsys, name, kept):
    lines = (copy / name).read_text().splitlines(keepends=True)
    (copy / name).write_text("".join(lines[:kept]))
    resume(copy, expect=2)
    one_line(capsys, f"{name}: ", "missing")


def test_a_kill_right_after_a_result_repeats_nothing_and_leaves_nothing(run, copy, monkeypatch):
    """Whoever is killed between a result and the end of its checkpoints."""
    (copy / "trials.csv").unlink()
    for folder in (copy / "warmup", copy / "trials" / "0000"):
        for suffix in ("json", "safetensors"):
            (folder / f"checkpoint-00000001.{suffix}").touch()
    monkeypatch.setattr(searcher_jobs, "train_in", None)  # nothing is trained
    resume(copy)
    assert outcome(copy) == outcome(run)
    assert not list(copy.rglob("checkpoint-*"))

"""`fixfirst search` and `resume`: the budget, the books, and the same bytes for any number of workers and interruptions."""

import csv
import errno
import json
import os
import resource
import shutil
import signal
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from golden import content
from held import Holds, checkpoint
from run_folder import write_config
from searches import (
    EASY,
    LONG,
    RANDOM,
    ROLE,
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
from fixfirst.base.files import read_json, with_checksum
from fixfirst.base.jobs import Finished, InlineScheduler
from fixfirst.base.seeds import stream_seed
from fixfirst.cli import main
from fixfirst.orders.order import Workflow, all_workflows
from fixfirst.policy.trained import load_policy
from fixfirst.reporter.results import searches_document
from fixfirst.reporter.run import Run
from fixfirst.runs.csv_logs import CsvLog
from fixfirst.runs.layout import WARMUP_KEY
from fixfirst.runs.manifest import read_settings
from fixfirst.runs.rows import ChoiceRow, EpisodeRow, SessionRow, Status, Trial, UpdateRow
from fixfirst.searcher import jobs as searcher_jobs
from fixfirst.searcher.published import PublishedSearch
from fixfirst.searcher.strategy import Strategy, StrategyConfig
from fixfirst.searcher.study import begin_study, open_search, run_searches
from fixfirst.settings.search import search_config

SEARCHED = EASY | ROLE | {"log_episodes": True}  # the golden run
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


@pytest.fixture
def copy(searched, tmp_path):
    return shutil.copytree(searched, tmp_path / "copy")


def search_with(trials=(), **settings):
    """A search that has used some episodes, for its sums only."""
    config = search_config(**{"separate": True, "warmup_episodes": 0, "min_episodes": 0, "ppo": {"num_envs": 10}} | settings)
    search = PublishedSearch(config, Path("nowhere"))
    add_trials(search, trials)
    return search


def add_trials(search, trials):
    for number, episodes in enumerate(trials, start=len(search.trials)):
        order = str(Workflow.from_number(number % 120))
        search.tell(Trial(id=number, workflow=order, episodes=episodes, status=Status.NON_COMPLIANT))


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


@pytest.mark.parametrize("seed", range(12))
def test_the_budget_is_never_exceeded_and_used_but_for_less_than_one_trial(seed):
    """Trials end after some part of their budgets."""
    rng = np.random.default_rng(seed)
    envs, least, total = int(rng.choice([1, 4, 7])), int(rng.choice([0, 30])), int(rng.integers(300, 900))
    sizes = {"max_episodes": int(rng.integers(40, 90)), "round_size": int(rng.integers(1, 6)), "ppo": {"num_envs": envs}}
    search = search_with(total_episodes=total, min_episodes=least, strategy="random", **sizes)
    while budgets := search.next_budgets():
        add_trials(search, [envs * int(rng.integers(1, budget // envs + 1)) for budget in budgets])
        assert search.used <= total
    assert total - search.used < max(-(-least // envs) * envs, envs)


@pytest.mark.parametrize("settings", [{"min_episodes": 10}, {"stop_when_compliant": False}])  # 10: 3 updates of 4
def test_no_trial_ends_before_min_episodes_or_when_it_is_not_to_stop(tmp_path, settings):
    folder = start(tmp_path / "run", RANDOM | settings, "--n-workflows", "2")
    assert [(row["status"], row["episodes"]) for row in ledger(folder)] == [("accepted", "12")] * 2


def test_the_files_have_the_promised_columns_and_a_row_of_the_ledger_says_what_its_trial_showed(searched):
    kinds = {"trials.csv": Trial, "gp_sampling_log.csv": ChoiceRow, "training_log.csv": UpdateRow}
    for name, kind in (kinds | {"episodes.csv": EpisodeRow, "runtime.csv": SessionRow}).items():
        header, *lines = csv.reader((searched / name).read_text().splitlines())
        assert tuple(header) == kind.columns() and {len(cells) for cells in lines} == {len(header)}, name
    names = {"config.toml", "manifest.json", "tb", "trials", "warmup", "best", "report.html", "replays", ".lock"}
    assert {path.name for path in searched.iterdir()} - {*kinds, "episodes.csv", "runtime.csv"} == names
    for number, row in enumerate(ledger(searched)):
        folder = searched / "trials" / f"{number:04d}"
        assert row["id"] == str(number) and row["policy"] == f"trials/{number:04d}"
        shown = json.loads((folder / "result.json").read_text())["evaluation"]
        assert float(row["return_mean"]) == pytest.approx(shown["mean"], abs=1e-6)
        assert float(row["compliance"]) == pytest.approx(shown["compliance"]["compliance"]["value"], abs=1e-6)
        policy = load_policy(folder)
        assert str(policy.workflow) == row["workflow"] and policy.facts["sha256"] == row["policy_sha256"]
        assert policy.facts["notes"]["accepted"] == (row["status"] == "accepted")
        assert float(row["return_low"]) < float(row["return_mean"]) < float(row["return_high"])


def test_the_training_log_counts_all_episodes_of_the_search_and_the_episode_log_has_each_once(searched):
    """48: the warm-up's 8 come before the first row; 40 in trials of whole updates of 4, a row for each update."""
    assert load_policy(searched / "warmup").facts["episodes"] == 8
    log, episodes = training_log(searched), rows(searched / "episodes.csv")
    assert [int(row["Total_Episodes_Sampled"]) for row in log] == list(range(12, 49, 4))
    updates = [(row["Workflow_ID"], row["Update"]) for row in log]
    assert updates == [(row["id"], str(u + 1)) for row in ledger(searched) for u in range(int(row["updates"]))]
    expected = [(row["id"], str(e + 1)) for row in ledger(searched) for e in range(int(row["episodes"]))]
    assert [(row["Workflow_ID"], row["Episode"]) for row in episodes] == expected
    for row in (*log, *episodes):
        assert float(row["Total_Reward"]) == pytest.approx(float(row["Env_Reward"]) + float(row["Alignment_Bonus"]))
    for update in log:
        own = [r for r in episodes if (r["Workflow_ID"], r["Update"]) == (update["Workflow_ID"], update["Update"])]
        assert np.mean([float(r["Env_Reward"]) for r in own]) == pytest.approx(float(update["Env_Reward"]), abs=1e-6)
        assert np.mean([int(r["Repairs"]) for r in own]) == pytest.approx(float(update["Avg_Fixes"]), abs=1e-6)


def test_every_choice_can_be_redone_from_the_ledger(searched):
    config = read_settings(searched / "config.toml")
    by_name = {str(workflow): workflow for workflow in all_workflows()}
    choices, trials = rows(searched / "gp_sampling_log.csv"), ledger(searched)
    assert [choice["workflow"] for choice in choices] == [trial["workflow"] for trial in trials]
    assert [choice["how"] for choice in choices[:4]] == ["random", "random", "random", "ucb"]
    for first in sorted({int(choice["round"]) for choice in choices}):
        strategy = Strategy(
            StrategyConfig(seed=stream_seed(config["seed"], "search"), beta=config["gp_beta"], initial_orders=3)
        )
        for trial in trials[:first]:
            numbers = float(trial["return_mean"]), float(trial["return_se"])
            mean, error = numbers if trial["status"] == "accepted" else (None, 0.0)
            strategy.tell(by_name[trial["workflow"]], mean, error)
        logged = [choice for choice in choices if int(choice["round"]) == first]
        for choice, row in zip(strategy.ask(len(logged)), logged, strict=True):
            assert (str(choice.workflow), choice.how) == (row["workflow"], row["how"])
            for place, (workflow, belief) in enumerate(choice.top.items(), start=1):
                assert row[f"top{place}_workflow"] == str(workflow)
                numbers = {"ucb": choice.ucb(workflow), "mean": belief.mean, "std": belief.std}
                for name, number in numbers.items():
                    assert float(row[f"top{place}_{name}"]) == pytest.approx(number, abs=1e-6)


def test_best_holds_the_policy_of_the_rankings_first_order(searched):
    first = open_search(searched).standings.ranking.rows[0].workflow
    assert load_policy(searched).workflow == load_policy(searched / "best").workflow == first


@pytest.mark.parametrize("rule", ["last", "nearest", "best", "none"])
def test_the_parent_is_recorded(tmp_path, rule):
    """Parents are looked for in the rounds before: trials of one round have the same past."""
    folder = start(tmp_path / "run", RANDOM | {"compliance_threshold": 0.3}, "--inherit", rule)
    trials = ledger(folder)
    orders = {row["workflow"]: Workflow.parse(row["workflow"]) for row in trials}
    parents = []
    for trial, choice in zip(trials, rows(folder / "gp_sampling_log.csv"), strict=True):
        past = [row for row in trials[: int(choice["round"])] if row["status"] == "accepted"]
        by_rule = {
            "last": past[-1:],
            "nearest": sorted(
                past[::-1], key=lambda row: orders[row["workflow"]].kendall_distance(orders[trial["workflow"]])
            ),
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


def test_published_presets_search_as_they_were_published(tmp_path):
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
    short = {"max_steps": 3, "test_episodes": 5, "n_workflows": 2, "max_episodes": 4}
    folder = start(tmp_path / "sequential", short, "--preset", "sequential")
    assert [row["episodes"] for row in ledger(folder)] == ["4", "4"]  # 3 steps never give 10 repairs


def test_the_config_of_a_run_starts_the_same_search(searched, tmp_path):
    again = tmp_path / "again"
    assert main(["search", "--out", str(again), "--config", str(searched / "config.toml"), *SILENT]) == 0
    assert (again / "config.toml").read_bytes() == (searched / "config.toml").read_bytes()
    assert outcome(again) == outcome(searched)


def test_json_output_is_one_document_also_when_resumed(tmp_path, capsys):
    """What stands in it is approved (searches.json)."""
    folder = start(tmp_path / "run", RANDOM, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(json.dumps(searches_document([open_search(folder)], folder))) and told["episodes"] == 48
    resume(folder, "--json")
    assert json.loads(capsys.readouterr().out) == told


def test_when_nothing_passes_the_gate_there_is_no_best_but_every_return_is_kept(tmp_path):
    folder = start(tmp_path / "run", RANDOM, "--compliance-threshold", "0.999", "--n-workflows", "2")
    assert not (folder / "best").exists() and {row["status"] for row in ledger(folder)} == {"non_compliant"}
    assert all(row["return_mean"] and row["compliance"] for row in ledger(folder))


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
        assert Run(folder).is_running
        start(folder, LONG, expect=2)
        one_line(capsys, f"{folder} exists already; go on with it: fixfirst resume {folder}")
        os.killpg(process.pid, signal.SIGINT)
        assert end(process) == ("", f"fixfirst: interrupted; go on with: fixfirst resume {folder}\n")
        assert process.returncode == 130 and Run(folder).status == "interrupted"
        assert checkpoints(part) and not (part / "policy.json").exists()  # the end of the training was not waited for
        arguments = ["resume", folder]
    resume(folder)
    assert outcome(folder) == outcome(undisturbed) and Run(folder).status == "finished"
    assert [row["outcome"] for row in rows(folder / "runtime.csv")] == ["interrupted", "interrupted", "finished"]


def cut_ledger(folder, number):
    path = folder / "trials.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[: 1 + number]))


def test_wherever_the_ledger_was_cut_the_search_ends_the_same(searched, tmp_path, monkeypatch):
    """Finished trials are read from their folders: not one is trained again, and even their seconds stay. Whoever is killed
    right after a result leaves checkpoints; they are deleted.
    """
    monkeypatch.setattr(searcher_jobs, "train_in", None)
    for number in range(len(ledger(searched))):
        folder = shutil.copytree(searched, tmp_path / str(number))
        cut_ledger(folder, number)
        for part, suffix in product(() if number else ("warmup", "trials/0000"), ("json", "safetensors")):
            (folder / part / f"checkpoint-00000001.{suffix}").touch()
        resume(folder)
        assert not list(folder.rglob("checkpoint-*"))
        for name in ("trials.csv", "gp_sampling_log.csv", "training_log.csv", "episodes.csv"):
            assert (folder / name).read_bytes() == (searched / name).read_bytes(), (number, name)


def change_result(copy):
    """Of the first trial, before it is in the ledger."""
    path = copy / "trials" / "0000" / "result.json"
    path.write_text(path.read_text().replace('"return_mean": -', '"return_mean": -1', 1))
    cut_ledger(copy, 0)


def change_job(copy):
    """The file is whole, but what it tells of was trained for another number of episodes."""
    path = copy / "trials" / "0000" / "result.json"
    path.write_text(json.dumps(with_checksum(read_json(path) | {"job": "0" * 64})))
    cut_ledger(copy, 0)


@pytest.mark.parametrize("damage", [change_result, change_job])
def test_what_a_trial_left_counts_only_as_it_was_written_else_it_is_trained_again_to_the_same_bytes(searched, copy, damage):
    damage(copy)
    resume(copy)
    assert outcome(copy) == outcome(searched)
    assert rows(copy / "episodes.csv") == rows(searched / "episodes.csv")


def swap_rows(copy):
    path = copy / "trials.csv"
    header, first, second, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([header, second, first, *rest]))


def lock_is_a_folder(copy):
    (copy / ".lock").unlink()
    (copy / ".lock").mkdir()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda copy: write_config(copy, {"sed": 1}), "unknown setting 'sed'; did you mean 'seed'?"),
        (swap_rows, "trials.csv: line 2 is not of trial 0, or damaged"),
        (lock_is_a_folder, "cannot be written (Is a directory); fix this, then run: fixfirst resume"),
    ],
)
def test_a_damaged_run_is_one_line_and_stays_as_it_is(copy, capsys, damage, says):
    damage(copy)
    before = content(copy)
    resume(copy, expect=2)
    one_line(capsys, says)
    assert content(copy) == before


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_in_a_training_is_one_line_and_the_search_can_go_on(searched, tmp_path, capsys, workers):
    """Files may not grow beyond 20 kB: the first checkpoint does not fit. Workers inherit the limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        folder = start(tmp_path / "run", SEARCHED, workers=workers, expect=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    one_line(capsys, f"{folder}: cannot be written (File too large); fix this, then run: fixfirst resume {folder}")
    resume(folder)
    assert outcome(folder) == outcome(searched)


def test_a_disk_that_is_full_when_a_trial_is_recorded_loses_nothing(searched, tmp_path, capsys, monkeypatch):
    """The third row of the ledger cannot be flushed."""
    sync = CsvLog.sync

    def flush(log):
        sync(log)
        if recorded(tmp_path / "run") >= 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(CsvLog, "sync", flush)
        folder = start(tmp_path / "run", SEARCHED, expect=2)
    one_line(capsys, f"cannot be written (No space left on device); fix this, then run: fixfirst resume {folder}")
    resume(folder)
    assert outcome(folder) == outcome(searched)


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


def test_a_trial_whose_worker_dies_once_is_tried_again_and_nothing_changes(searched, tmp_path):
    view = NoView()
    run_with(Dying({WARMUP_KEY: 1, 0: 1, 4: 1}), tmp_path / "run", SEARCHED, view)
    assert outcome(tmp_path / "run") == outcome(searched)
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


def test_a_search_whose_workers_always_die_ends_at_once_if_it_is_in_the_warm_up(tmp_path, capsys):
    with pytest.raises(WorkerError, match="warm-up: its worker died again and again"):
        run_with(Dying({WARMUP_KEY: 2}), tmp_path / "warm-up", RANDOM)
    run_with(Dying(dict.fromkeys(range(100), 2)), tmp_path / "run", RANDOM)
    assert [row["status"] for row in ledger(tmp_path / "run")] == ["failed"] * 4  # 40 episodes: 12, 12, then 8 and 8
    resume(tmp_path / "run")
    assert "No order passed the gate" in capsys.readouterr().out


def test_a_damaged_policy_is_not_put_into_best(copy, capsys):
    best = copy / open_search(copy).standings.best.policy / "policy.safetensors"
    shutil.rmtree(copy / "best")
    (copy / "runtime.csv").unlink()  # as if it had not ended
    best.write_bytes(best.read_bytes()[:-1] + b"?")
    resume(copy, expect=2)
    one_line(capsys, "policy.safetensors")
    assert not (copy / "best").exists()

"""Small run directories written by hand, so that a test can state every number in them."""

import json
from dataclasses import asdict, fields

import tomli_w

from fixfirst.base.files import read_json, sha256, with_checksum, write_document
from fixfirst.runs.csv_logs import CsvLog
from fixfirst.runs.rows import ChoiceRow, Outcome, SessionRow, Status, Trial, UpdateRow
from fixfirst.stats.evaluation import Evaluation

BEST = "enterprise > op_server > op_host > user > defender"
ALIKE = "op_server > enterprise > op_host > user > defender"
WORST = "user > enterprise > op_server > op_host > defender"
LOST = "user > op_server > enterprise > op_host > defender"
# id, order, status, mean return, its standard error, compliance, contested compliance, episodes, parent
TRIALS = (
    (0, BEST, "accepted", -14.0, 0.1, 0.99, 0.98, 200, None),
    (1, WORST, "accepted", -30.0, 0.5, 0.96, 0.90, 300, 0),
    (2, ALIKE, "accepted", -14.2, 0.1, 0.97, 0.95, 200, 1),
    (3, LOST, "non_compliant", -22.0, 0.4, 0.60, 0.30, 300, 2),
)
BEGUN = "2026-01-02T03:04:05+00:00"


def write_log(path, kind, rows):
    log = CsvLog(path, kind)
    for row in rows:
        log.write(row)
    log.close()


def digest(number):
    """What stands for the sha256 of a trial's policy."""
    return f"{number:02d}" + 31 * "ab"


def trial_rows(trials):
    names = (
        "id",
        "workflow",
        "status",
        "return_mean",
        "return_se",
        "compliance",
        "contested_compliance",
        "episodes",
        "parent",
    )
    for cells in trials:
        number, _, status, mean, se, *_, episodes, _ = cells
        low, high = (None, None) if mean is None else (mean - 2 * se, mean + 2 * se)
        facts = {"return_low": low, "return_high": high, "updates": episodes // 100, "seconds": 2.25}
        facts |= {"policy": f"trials/{number:04d}", "policy_sha256": digest(number), "status": Status(status)}
        yield Trial(**dict(zip(names, cells, strict=True)) | facts)


def update_row(**cells):
    """What is not given is 0."""
    return UpdateRow(**dict.fromkeys((field.name for field in fields(UpdateRow)), 0) | {"workflow": "none"} | cells)


def update_rows(trials, warmup_episodes):
    used, times = warmup_episodes, {"collection_s": 0.3, "update_s": 0.4}
    for number, order, _, mean, _, compliance, _, episodes, _ in trials:
        for update in range(1, 1 if mean is None else episodes // 100 + 1):  # a worker that died left no log
            facts = {"trial": number, "workflow": order, "update": update, "compliance": compliance}
            far = {"episodes": 100 * update, "sampled": used + 100 * update, "env_reward": mean - 5 / update}
            yield update_row(**facts, **far, **times)
        used += episodes


def choice_rows(trials):
    """Two random orders, then what the Gaussian process chose."""
    believed = ({"how": "random"}, {"how": "random"}, {"how": "ucb", "beta": 2, "ucb": -10.0, "mean": -16.0, "std": 3.0})
    for number, (_, order, *_) in enumerate(trials):
        yield ChoiceRow(iteration=number, round=number // 2 * 2, workflow=order, **believed[min(number, 2)])


def write_manifest(folder, kind, seed, command="fixfirst search"):
    machine = {"system": "Linux", "cores": 2, "features": ["avx2", "fma"]}
    document = {"schema": 2, "created": BEGUN, "command": command, "seed": seed, "options": {}, "machine": machine}
    document |= {"versions": {"numpy": "2.4.6"}, "config_sha256": sha256((folder / "config.toml").read_bytes())}
    write_document(folder / "manifest.json", kind, document)


def write_config(folder, config):
    """Also where there is a run already, as if it had been begun with this."""
    (folder / "config.toml").write_text(tomli_w.dumps(config))
    if (folder / "manifest.json").exists():
        resign(folder)


def resign(folder, **changes):
    """A manifest with other values, as if the run had been begun with them, and with the config that lies there."""
    config = {"config_sha256": sha256((folder / "config.toml").read_bytes())}
    manifest = read_json(folder / "manifest.json") | config | changes
    (folder / "manifest.json").write_text(json.dumps(with_checksum(manifest)))


def write_session(folder, seconds, workers=1, choosing_seconds=0.0, outcome="finished"):
    times = {"seconds": seconds, "workers": workers, "choosing_seconds": choosing_seconds}
    write_log(folder / "runtime.csv", SessionRow, [SessionRow(started=BEGUN, outcome=Outcome(outcome), **times)])


def write_result(path, mean, low, high, **facts):
    path.parent.mkdir(parents=True, exist_ok=True)
    repairs = {"restores": 2.5, "removes": 7.25, "costs": {"enterprise": -mean - 2.5, "Restore": 2.5}}
    evaluation = Evaluation("b_line", 100, "current", 1000, mean, 0.1, low, high, None, **repairs)
    write_document(path, "result", {"evaluation": asdict(evaluation)} | facts)


def write_search(folder, trials=TRIALS, *, seed=0, command="fixfirst search", red_agent="b_line", units=None, **settings):
    """A finished search: 10 s with 2 workers, 2,000 warm-up episodes."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"total_episodes": 3000, "strategy": "gp_ucb", "seed": seed, "test_episodes": 1000, "max_episodes": 20_000}
    config |= {"red_agent": red_agent, "variant": "current", "compliance_threshold": 0.95, "n_envs": 100}
    config |= {"units": units} if units else {}
    write_config(folder, config | settings)
    write_manifest(folder, "search", seed, command)
    write_log(folder / "trials.csv", Trial, trial_rows(trials))
    write_log(folder / "training_log.csv", UpdateRow, update_rows(trials, 2000))
    write_log(folder / "gp_sampling_log.csv", ChoiceRow, choice_rows(trials))
    write_session(folder, 10.0, workers=2, choosing_seconds=0.5)
    write_result(folder / "warmup" / "result.json", -14.5, -14.7, -14.3, episodes=2000, seconds=2.0)
    best = max((t for t in trials if t[2] == "accepted"), key=lambda t: t[3], default=None)
    if best is not None:
        (folder / "best").mkdir(exist_ok=True)
        write_document(folder / "best" / "policy.json", "policy", {"sha256": digest(best[0])})
    return folder


def write_training(folder, mean=-15.0, *, seed=0, red_agent="b_line", **settings):
    """A finished training without an order."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"workflow": "none", "seed": seed, "red_agent": red_agent, "variant": "current"}
    write_config(folder, config | settings)
    write_manifest(folder, "train", seed)
    rows = update_rows([(0, "none", "", mean, 0.1, None, None, 1000, None)], 0)
    write_log(folder / "training_log.csv", UpdateRow, rows)
    write_session(folder, 8.0)
    write_result(folder / "result.json", mean, mean - 0.3, mean + 0.3, accepted=False, episodes=1000)
    return folder

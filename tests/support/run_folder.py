"""Small run directories written by hand, so that a test can state every number in them."""

import csv
import json

import tomli_w

from fixfirst.runs.run_dir import CHOICE_COLUMNS, RUNTIME_COLUMNS, TRAINING_COLUMNS, TRIAL_COLUMNS

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


def write_csv(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([["" if row.get(column) is None else row[column] for column in columns] for row in rows])


def digest(number):
    """What stands for the sha256 of a trial's policy."""
    return f"{number:02d}" + 31 * "ab"


def trial_rows(trials):
    for number, order, status, mean, se, compliance, contested, episodes, parent in trials:
        yield {
            "id": number,
            "workflow": order,
            "status": status,
            "return_mean": mean,
            "return_se": se,
            "return_low": None if mean is None else mean - 2 * se,
            "return_high": None if mean is None else mean + 2 * se,
            "compliance": compliance,
            "contested_compliance": contested,
            "episodes": episodes,
            "updates": episodes // 100,
            "parent": parent,
            "policy": f"trials/{number:04d}",
            "policy_sha256": digest(number),
            "seconds": 2.25,
        }


def update_rows(trials, warmup_episodes):
    used = warmup_episodes
    for number, order, _, mean, _, compliance, _, episodes, _ in trials:
        for update in range(1, 1 if mean is None else episodes // 100 + 1):  # a worker that died left no log
            yield {
                "Workflow_ID": number,
                "Workflow_Order": order,
                "Update": update,
                "Episodes": 100 * update,
                "Total_Episodes_Sampled": used + 100 * update,
                "Env_Reward": mean - 5 / update,
                "Compliance": compliance,
                "Collection_Time": 0.3,
                "Update_Time": 0.4,
            }
        used += episodes


def write_manifest(folder, kind, seed, command="fixfirst search"):
    document = {"schema": 1, "kind": kind, "created": "2026-01-02T03:04:05+00:00", "command": command, "seed": seed}
    document |= {"options": {}, "versions": {"numpy": "2.4.6"}, "machine": {"system": "Linux", "cores": 2}}
    (folder / "manifest.json").write_text(json.dumps(document))


def write_result(path, mean, low, high, **facts):
    path.parent.mkdir(parents=True, exist_ok=True)
    evaluation = {"episodes": 1000, "mean": mean, "low": low, "high": high, "compliance": None}
    path.write_text(json.dumps({"evaluation": evaluation} | facts))


def write_search(folder, trials=TRIALS, *, seed=0, command="fixfirst search", **settings):
    """A finished search: 10 s with 2 workers, 2,000 warm-up episodes."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"red_agent": "b_line", "variant": "current", "strategy": "gp_ucb", "seed": seed, "test_episodes": 1000}
    config |= {"compliance_threshold": 0.95, "ppo": {"num_envs": 100}}
    (folder / "config.toml").write_text(tomli_w.dumps(config | settings))
    write_manifest(folder, "search", seed, command)
    write_csv(folder / "trials.csv", TRIAL_COLUMNS, trial_rows(trials))
    write_csv(folder / "training_log.csv", TRAINING_COLUMNS, update_rows(trials, 2000))
    believed = ({"how": "random"}, {"how": "random"}, {"how": "ucb", "beta": 2, "ucb": -10.0, "mean": -16.0, "std": 3.0})
    choices = ({"iteration": i, "workflow": t[1]} | believed[min(i, 2)] for i, t in enumerate(trials))
    write_csv(folder / "gp_sampling_log.csv", CHOICE_COLUMNS, choices)
    session = {"started": "2026-01-02T03:04:05+00:00", "outcome": "finished", "seconds": 10.0, "workers": 2}
    write_csv(folder / "runtime.csv", RUNTIME_COLUMNS, [session | {"choosing_seconds": 0.5}])
    write_result(folder / "warmup" / "result.json", -14.5, -14.7, -14.3, episodes=2000, seconds=2.0)
    best = max((t for t in trials if t[2] == "accepted"), key=lambda t: t[3], default=None)
    if best is not None:
        (folder / "best").mkdir(exist_ok=True)
        (folder / "best" / "policy.json").write_text(json.dumps({"sha256": digest(best[0])}))
    return folder


def write_training(folder, mean=-15.0, *, seed=0, **settings):
    """A finished training without an order."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"red_agent": "b_line", "variant": "current", "workflow": "none", "seed": seed}
    (folder / "config.toml").write_text(tomli_w.dumps(config | settings))
    write_manifest(folder, "train", seed)
    rows = update_rows([(0, "none", "", mean, 0.1, None, None, 1000, None)], 0)
    write_csv(folder / "training_log.csv", TRAINING_COLUMNS, rows)
    session = {"started": "2026-01-02T03:04:05+00:00", "outcome": "finished", "seconds": 8.0, "workers": 1}
    write_csv(folder / "runtime.csv", RUNTIME_COLUMNS, [session | {"choosing_seconds": 0.0}])
    write_result(folder / "result.json", mean, mean - 0.3, mean + 0.3, accepted=False, episodes=1000)
    return folder

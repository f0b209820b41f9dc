"""How well does the search find good orders, and is its verdict honest? No training: landscapes with known truth.

    python benchmarks/search.py [--functions 100] [--starts 5] [--json FILE]

Landscapes over the 120 orders, standardised; evaluations carry noise of 0.25 of their standard deviation. Simple regret: how
much worse the recommended order truly is than the best one, in % of the range. Every method recommends what it believes
best: random search and Optuna's TPE the best observed order, gp_ucb the tried order with the highest GP mean.
The table goes to stdout, progress to stderr. TPE needs the extra `bench`.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from fixfirst.orders.order import FIVE_TYPES, all_workflows
from fixfirst.searcher.strategy import Strategy, StrategyConfig
from fixfirst.stats.ranking import rank

WORKFLOWS = tuple(all_workflows(FIVE_TYPES))
ORDERS = np.array([workflow.order for workflow in WORKFLOWS])  # [120, 5]
NUM_ORDERS, U = ORDERS.shape
SIGNS = np.array([workflow.pair_signs() for workflow in WORKFLOWS])
KENDALL = (SIGNS[:, None] != SIGNS).mean(-1)  # [120, 120]

NOISE = 0.25
CHECKPOINTS = (20, 40)
NULL_SEEDS, NULL_EVALUATIONS = 200, 40
PLANTED_SEEDS, PLANTED_GAPS = 1000, (0, 3, 4, 5, 6, 8)


# Landscapes: [120] values, larger is better.


def linear_ordering(rng):
    weight = rng.random((U, U))
    return np.array([weight[np.ix_(order, order)][np.triu_indices(U, 1)].sum() for order in ORDERS])


def quadratic_assignment(rng):
    flow, distance = rng.random((2, U, U))
    return np.array([-(flow * distance[np.ix_(order, order)]).sum() for order in ORDERS])


def tour(rng):
    city = rng.random((U, 2))
    return np.array([-np.linalg.norm(city[order] - city[np.roll(order, 1)], axis=1).sum() for order in ORDERS])


def flow_shop(rng, machines=5):
    """Minus the time until the last job leaves the last machine."""
    duration = rng.integers(1, 100, (U, machines))
    values = []
    for order in ORDERS:
        free = np.zeros(machines)
        for job in order:
            done = 0.0
            for machine in range(machines):
                done = free[machine] = max(done, free[machine]) + duration[job, machine]
        values.append(-free[-1])
    return np.array(values)


def linear_assignment(rng):
    cost = rng.random((U, U))
    return -cost[np.arange(U), ORDERS].sum(axis=1)


def mallows_gp(rng, length=0.5):
    return np.linalg.cholesky(np.exp(-KENDALL / length) + 1e-9 * np.eye(NUM_ORDERS)) @ rng.standard_normal(NUM_ORDERS)


def iid(rng):
    return rng.standard_normal(NUM_ORDERS)


FAMILIES = {
    "LOP": linear_ordering,
    "QAP": quadratic_assignment,
    "TSP": tour,
    "PFSP": flow_shop,
    "LAP": linear_assignment,
    "Mallows GP": mallows_gp,
    "IID": iid,
}
STRUCTURED = tuple(FAMILIES)[:6]


def landscape(family, function):
    values = FAMILIES[family](np.random.default_rng([list(FAMILIES).index(family), function]))
    return (values - values.mean()) / values.std()


# Methods: yield after each evaluation the number of the order recommended so far; None where nobody looks.


def run_strategy(name, evaluate, seed, evaluations, strategy=None):
    strategy = strategy or Strategy(StrategyConfig(name=name, seed=seed))
    for count in range(1, evaluations + 1):
        (choice,) = strategy.ask()
        strategy.tell(choice.workflow, evaluate(choice.workflow.number), NOISE)
        yield strategy.best().number if count in CHECKPOINTS else None


def run_tpe(evaluate, seed, evaluations):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    for _ in range(evaluations):
        trial = study.ask()
        study.tell(trial, evaluate(trial.suggest_categorical("order", range(NUM_ORDERS))))
        yield study.best_trial.params["order"]


def evaluator(values, *seed):
    rng = np.random.default_rng(seed)
    return lambda number: values[number] + NOISE * rng.standard_normal()


def regrets(method, family, function, start, verdicts):
    """Simple regret in % at each checkpoint; for gp_ucb also judges the final ranking."""
    values = landscape(family, function)
    evaluate = evaluator(values, list(FAMILIES).index(family), function, start)
    seed = 1000 * function + start
    strategy = Strategy(StrategyConfig(name=method, seed=seed)) if method != "tpe" else None
    steps = (
        run_strategy(method, evaluate, seed, CHECKPOINTS[-1], strategy)
        if strategy
        else run_tpe(evaluate, seed, CHECKPOINTS[-1])
    )
    recommended = [number for count, number in enumerate(steps, 1) if count in CHECKPOINTS]
    if method == "gp_ucb":
        verdicts.append(judge(strategy, values))
    return [100 * (values.max() - values[number]) / np.ptp(values) for number in recommended]


def judge(strategy, values):
    """(the best tried order may be the best, a winner is declared, it is not the best tried order) of a final ranking."""
    ranking = rank(*zip(*strategy.returns, strict=True))
    best = max(values[workflow.number] for workflow, _, _ in strategy.returns)
    holds = any(values[workflow.number] == best for workflow in ranking.maybe_best)
    winner = ranking.winner
    return holds, winner is not None, winner is not None and values[winner.number] < best


def null_share(name, evaluations):
    """Share of seeds in which a winner is declared though all orders are equal."""
    declared = 0
    for seed in range(NULL_SEEDS):
        strategy = Strategy(StrategyConfig(name=name, seed=seed))
        list(run_strategy(name, evaluator(np.zeros(NUM_ORDERS), 1, seed), seed, evaluations, strategy))
        declared += judge(strategy, np.zeros(NUM_ORDERS))[1]
    return declared / NULL_SEEDS


def planted(gap):
    """All 120 orders evaluated once, one better by `gap` standard errors: shares of what the ranking says of it."""
    found = declared = wrong = holds = 0
    covered, bias = 0, 0.0
    for seed in range(PLANTED_SEEDS):
        rng = np.random.default_rng([2, seed])
        winner = int(rng.integers(NUM_ORDERS))
        truth = np.zeros(NUM_ORDERS)
        truth[winner] = gap
        ranking = rank(WORKFLOWS, truth + rng.standard_normal(NUM_ORDERS), np.ones(NUM_ORDERS))
        top = ranking.rows[0]
        found += top.workflow.number == winner
        holds += WORKFLOWS[winner] in ranking.maybe_best
        declared += ranking.winner is not None
        wrong += ranking.winner not in (None, WORKFLOWS[winner])
        bias += top.mean - truth[top.workflow.number]
        covered += top.low <= truth[top.workflow.number] <= top.high
    names = ("found", "in_group", "declared", "declared_wrong", "winners_curse", "interval_covers")
    shares = np.array([found, holds, declared, wrong, bias, covered]) / PLANTED_SEEDS
    return {"gap": gap, **dict(zip(names, shares.tolist(), strict=True))}


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=100, help="random functions per family")
    parser.add_argument("--starts", type=int, default=5, help="runs per function, with other seeds")
    parser.add_argument("--methods", nargs="+", default=["gp_ucb", "random", "tpe"], choices=["gp_ucb", "random", "tpe"])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning, module="optuna")

    result = {"functions": args.functions, "starts": args.starts, "regret": {}, "standard_error": {}, "seconds": {}}
    verdicts = []
    for method in args.methods:
        began = time.perf_counter()
        for family in FAMILIES:
            runs = [
                regrets(method, family, function, start, verdicts)
                for function in range(args.functions)
                for start in range(args.starts)
            ]
            per_function = np.array(runs).reshape(args.functions, args.starts, -1).mean(1)
            result["regret"].setdefault(method, {})[family] = per_function.mean(0).tolist()
            error = per_function.std(0, ddof=1) / np.sqrt(args.functions) if args.functions > 1 else [np.nan, np.nan]
            result["standard_error"].setdefault(method, {})[family] = list(error)
            print(f"{method} {family}: {np.round(per_function.mean(0), 2)}", file=sys.stderr, flush=True)
        result["seconds"][method] = time.perf_counter() - began

    print(f"Simple regret in % of the range at {' / '.join(map(str, CHECKPOINTS))} evaluations, mean over ", end="")
    print(f"{args.functions} functions x {args.starts} starts, ± its standard error (functions as the unit).\n")
    rows = []
    for method, regret in result["regret"].items():
        structured = np.mean([regret[family] for family in STRUCTURED], axis=0)
        result.setdefault("mean_of_six", {})[method] = structured.tolist()
        cells = [
            " / ".join(f"{r:.1f} ± {e:.1f}" for r, e in zip(regret[f], result["standard_error"][method][f], strict=True))
            for f in FAMILIES
        ]
        rows.append([method, "**{:.2f} / {:.2f}**".format(*structured), *cells])
    print(table(["method", "mean of the first six", *FAMILIES], rows), flush=True)

    if verdicts:
        holds, declared, wrong = np.mean(verdicts, axis=0)
        result["verdicts"] = {"in_group": holds, "declared": declared, "declared_wrong": wrong}
        print(
            f"\nFinal rankings of these {len(verdicts)} gp_ucb searches (95 % confidence): the best tried order is in the "
            f"group that cannot be told from the best in {100 * holds:.1f} %; a single winner is declared in "
            f"{100 * declared:.1f} %, wrongly in {100 * wrong:.1f} %."
        )
    print("progress: null and planted landscapes", file=sys.stderr, flush=True)
    result["null"] = {
        "gp_ucb": null_share("gp_ucb", NULL_EVALUATIONS),
        "exhaustive": null_share("exhaustive", NUM_ORDERS),
    }
    print(
        f"\nNull landscape (all orders equal), {NULL_SEEDS} seeds: a winner is declared in "
        f"{100 * result['null']['gp_ucb']:.1f} % of gp_ucb searches with {NULL_EVALUATIONS} evaluations and "
        f"{100 * result['null']['exhaustive']:.1f} % of exhaustive ones.\n"
    )
    result["planted"] = [planted(gap) for gap in PLANTED_GAPS]
    print(f"Planted winner, all 120 orders evaluated once, {PLANTED_SEEDS} seeds; gap and bias in standard errors.\n")
    shares = {
        "found": "has the highest mean",
        "in_group": "in the group of the best",
        "declared": "winner declared",
        "declared_wrong": "wrongly",
        "interval_covers": "interval of the highest holds",
    }
    rows = [
        [p["gap"], *(f"{100 * p[key]:.1f} %" for key in shares), f"{p['winners_curse']:+.2f}"] for p in result["planted"]
    ]
    print(table(["gap", *shares.values(), "bias of the highest mean"], rows))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()

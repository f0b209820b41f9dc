"""What does keeping any order cost, against no order at equal training?

    fixfirst search --red-agent b_line --out runs/rule-b_line
    python benchmarks/no_order.py runs/rule-b_line

The search's own trainings, without an order: as many begin and go on, with the episodes, rates and schedules of those that
keep orders; nothing is forbidden, nothing is suspected. Both are played on as many fresh episodes as the search measures
each order on. The price of the best order is the difference of the two means, with Welch's 95 % interval over trainings.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import t

from fixfirst.base.seeds import stream_seed
from fixfirst.learner.training import Training
from fixfirst.orders.order import Workflow
from fixfirst.play.evaluation import play
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import load_policy
from fixfirst.runs.layout import RunFiles
from fixfirst.searcher.shared import SharedSearch
from fixfirst.searcher.study import open_search
from fixfirst.settings.training import NONE


def under_the_best_order(search: SharedSearch) -> list[float]:
    """What each replicate earns under it, told what serves it best there."""
    assert search.answer is not None
    best, config, earned = search.answer.orders[0], search.config, []
    for number, prompt in zip(search.kept_trainings(), best.prompts, strict=True):
        policy, kept = (
            load_policy(RunFiles(search.folder).replicate(number)),
            (Workflow.parse(best.workflow, search.config.scheme),),
        )
        words = (Workflow.parse(prompt, search.config.scheme),)
        player = PolicyTable(policy.network, kept, spec=policy.spec, prompts=words)
        played = play(
            player,
            config.training.game,
            episodes=config.measure_episodes,
            seed=config.seed,
            purpose=f"no order/{number}",
            workflows=kept,
        )
        earned.append(float(played.returns.mean()))
    return earned


def without_an_order(search: SharedSearch) -> list[float]:
    """What each of as many replicates earns; some are dropped as in the search, after as large a share of the training."""
    config = search.config
    budget = config.budget.base + config.budget.orders
    until_drop = config.budget.base + config.budget.drop_round * config.budget.round_episodes
    ppo = search.config.orders_configs(search.idle)[0].ppo
    trainings = []
    for number in range(config.trainings):
        own = {"workflow": NONE, "total_episodes": budget, "ppo": ppo, "seed": stream_seed(config.seed, "no order", number)}
        training = Training(config.training.model_copy(update=own), number)
        while training.episodes < until_drop and config.budget.drop_round:
            training.step()
        trainings.append(training)
        print(f"begun without an order: {number + 1} of {config.trainings}", flush=True)
    trainings.sort(key=lambda training: -training.evaluate("contest", config.watch_episodes).mean)
    earned = []
    for number, training in enumerate(trainings[: config.replicates]):
        while not training.done:
            training.step()
        earned.append(training.evaluate("no order", config.measure_episodes).mean)
        print(f"without an order, {number + 1} of {config.replicates}: {earned[-1]:.2f}", flush=True)
    return earned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    folder = parser.parse_args().run
    search = open_search(folder)
    kept, free = np.array(under_the_best_order(search)), np.array(without_an_order(search))
    errors = np.array([values.var(ddof=1) / len(values) for values in (free, kept)])
    freedom = errors.sum() ** 2 / (errors**2 / (len(kept) - 1)).sum()
    price, half = free.mean() - kept.mean(), t.ppf(0.975, freedom) * np.sqrt(errors.sum())
    print(f"without an order {free.mean():.2f}, under the best one {kept.mean():.2f}")
    print(f"keeping it costs {price:.2f} [{price - half:.2f}, {price + half:.2f}] points an episode")


if __name__ == "__main__":
    main()

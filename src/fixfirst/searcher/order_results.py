"""What a policy earns under an order: playing it, judging what was played, and the rows of a result.json about it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fixfirst.base import distributions
from fixfirst.orders.order import Workflow
from fixfirst.play import evaluation
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.settings.training import TrainConfig
from fixfirst.stats import intervals
from fixfirst.stats.pricing import OrderResult

TAIL = -60.0  # episodes that earn less are disasters


def play_under(
    network: Network,
    spec: PolicySpec,
    config: TrainConfig,
    order: Workflow,
    prompt: Workflow,
    purpose: str,
    episodes: int,
    seed: int,
) -> evaluation.EpisodeBatch:
    """Play a policy that is told one order and has to keep another."""
    player = PolicyTable(network, (order,), spec=spec, prompts=(prompt,))
    return evaluation.play(player, config.game, episodes=episodes, seed=seed, purpose=purpose, workflows=(order,))


def judge_order(played: evaluation.EpisodeBatch, prompt: Workflow, config: TrainConfig) -> OrderResult:
    """Say what was earned under an order, and how it was kept. prompt: what the policy was told."""
    (order,), returns, counts = played.rollout.workflows, played.returns, played.counts(config.judging)
    assert counts is not None
    episodes, broken = len(returns), counts.judged - counts.compliant
    rate, error = float(broken.mean()), intervals.standard_error(broken)
    return OrderResult(
        order=order,
        prompt=prompt,
        mean=float(returns.mean()),
        standard_error=intervals.standard_error(returns),
        tail=float((returns < TAIL).mean()),
        violations=rate,
        violations_high=rate
        + distributions.normal_quantile(distributions.CONFIDENCE) * error
        + 3.0 / episodes,  # the last term: none seen in n is at most 3 / n
        compliance=_share(counts.compliant, counts.judged),
        contested=_share(counts.contested_compliant, counts.contested),
        restores=played.count("Restore"),
        removes=played.count("Remove"),
        costs=tuple(played.costs(order.scheme).mean(axis=1).tolist()),
    )


def _share(hits: np.ndarray, of: np.ndarray) -> float | None:
    total = int(of.sum())
    return int(hits.sum()) / total if total else None


def as_document(results: Sequence[OrderResult]) -> dict[str, Any]:
    """Return results as a JSON document."""
    return {"results": [vars(one) | {"order": str(one.order), "prompt": str(one.prompt)} for one in results]}


def from_document(document: Mapping[str, Any], orders: Sequence[Workflow]) -> list[OrderResult]:
    """Return the results of a document; KeyError if it speaks of others than these orders."""
    by_name = {str(order): order for order in orders}
    found = (row | {name: by_name[row[name]] for name in ("order", "prompt")} for row in document["results"])
    return [OrderResult(**row | {"costs": tuple(row["costs"])}) for row in found]

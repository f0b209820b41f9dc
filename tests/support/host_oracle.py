"""The network for any scenario in PyTorch: what the compiled one is tested against, forward and backward."""

from collections.abc import Sequence

import numpy as np
import torch

from fixfirst.policy.host_facts import BLOCKS, DOUBTFUL, FORBIDDEN, MOMENT_BITS, SUSPECT, HostFacts

QUIET_TURNS = 5


def parameters(layers) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(array, dtype=torch.float64, requires_grad=True) for name, array in layers._asdict().items()}


def moments(facts: HostFacts, ranks: np.ndarray, bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bits of the moment [L, 37] and quiet turns [5] of a row with these bits [I] that keeps an order of these ranks [U]."""
    hosts = len(facts.unit)
    x, quiet = np.zeros((hosts, MOMENT_BITS)), np.zeros(QUIET_TURNS)
    for bit in np.flatnonzero(bits):
        if facts.bit_host[bit] >= 0:
            x[facts.bit_host[bit], facts.bit_number[bit]] = 1
        elif facts.bit_host[bit] == -1:
            quiet[facts.bit_number[bit]] = 1
    x[:, DOUBTFUL] = (x[:, 2] + x[:, 3] + x[:, SUSPECT] > 0) & (np.arange(hosts) != facts.start)
    if ranks[0] >= 0:
        rank = ranks[facts.unit]
        top = min(rank[x[:, DOUBTFUL] > 0], default=len(ranks))
        x[:, FORBIDDEN] = rank > top
        x[:, BLOCKS] = (x[:, DOUBTFUL] > 0) & (rank == top) & x[:, FORBIDDEN].any()
    return x, quiet


def encode(w: dict[str, torch.Tensor], x: torch.Tensor, facts: torch.Tensor) -> torch.Tensor:
    hidden = torch.relu(x @ w["moment"] + facts @ w["facts"] + w["bias1"])
    return torch.relu(hidden @ w["code"] + w["bias2"])


def pooled(code: torch.Tensor, quiet: torch.Tensor) -> torch.Tensor:
    return torch.cat([code.mean(0), code.max(0).values, quiet, torch.zeros(11, dtype=code.dtype)])


def mixing(facts: HostFacts, ranks: np.ndarray) -> dict[str, torch.Tensor]:
    """Matrices [L, L] by which messages of others are summed up."""
    hosts = len(facts.unit)
    matrices = {name: torch.zeros((hosts, hosts), dtype=torch.float64) for name in ("led_by", "leads_to")}
    for name, starts, others in (
        ("led_by", facts.reached_from, facts.sources),
        ("leads_to", facts.leads_from, facts.targets),
    ):
        for host in range(hosts):
            mine = others[starts[host] : starts[host + 1]]
            matrices[name][host, mine] = 1 / max(len(mine), 1)
    same = facts.subnet[:, None] == facts.subnet
    matrices["subnet"] = torch.tensor(same / same.sum(axis=1, keepdims=True))
    rank = ranks[facts.unit]
    for name, earlier in (("before", rank < rank[:, None]), ("after", rank > rank[:, None])):
        matrices[name] = torch.tensor(earlier * (2 / hosts) * (ranks[0] >= 0))
    return matrices


def logits(
    w: dict[str, torch.Tensor], facts: HostFacts, of_order: np.ndarray, ranks: np.ndarray, bits: np.ndarray
) -> torch.Tensor:
    """Logits of all choices [A] of a row with these bits [I]; of_order [L, 11], ranks [U]."""
    x, quiet = map(torch.tensor, moments(facts, ranks, bits))
    network = torch.tensor(facts.network, dtype=torch.float64)
    code = encode(w, x, torch.cat([network, torch.tensor(of_order, dtype=torch.float64)], 1))
    whole = torch.relu(pooled(code, quiet) @ w["pool"] + w["bias_pool"])
    message = code @ w["message"]
    around = torch.cat([matrix @ message for matrix in mixing(facts, ranks).values()], 1)
    middle = code @ w["own"] + around @ w["around"] + whole @ w["whole"] + w["bias3"]
    verbs = torch.relu(middle) @ w["output"] + w["bias_output"]
    outputs = torch.cat([verbs.flatten(), whole @ w["sleep"] + w["bias_sleep"]])
    return outputs[torch.tensor(facts.choice_output)]


def value(
    w: dict[str, torch.Tensor], facts: HostFacts, of_order: np.ndarray, ranks: np.ndarray, bits: np.ndarray
) -> torch.Tensor:
    x, quiet = map(torch.tensor, moments(facts, ranks, bits))
    facts_of_hosts = np.concatenate([facts.network, of_order], axis=1)
    code = encode(w, x, torch.tensor(facts_of_hosts, dtype=torch.float64))
    seen = torch.relu(pooled(code, quiet) @ w["pool"] + w["bias_pool"])
    return (seen @ w["value"] + w["bias_value"])[0]


def stacked(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack(list(rows))

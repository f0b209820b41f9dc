"""The gate: what a policy must show before its order counts. The one place where `accepted` is decided."""

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from fixfirst.orders.compliance import CONFIDENCE, Compliance, lower_bound

if TYPE_CHECKING:
    from fixfirst.orders.judging import Counts

GateRule = Literal["bound", "latest"]


class Gate(BaseModel):
    """What a policy must show before its order counts.

    bound: the frozen policy plays episodes of its own; the lower bound of its compliance reaches the threshold, with enough
    judged repairs. A training is looked at again and again, and whoever looks often enough is lucky once; so what a look
    accepts must be confirmed on further fresh episodes, and all confirmations of a training share its 5 %.
    latest: the published presets' rule, on training episodes: mean compliance of each environment's latest episode, with
    enough repairs in all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gate_rule: GateRule = Field(
        "bound", description="bound (compliance's lower bound on fresh episodes) or latest (the published rule)."
    )
    compliance_threshold: float = Field(
        0.95, gt=0, le=1, description="An order counts once the policy's compliance is this high with 95 % confidence."
    )
    min_judged: int = Field(50, ge=1, description="Judged repairs that the rule `bound` asks for.")
    min_repairs: int = Field(10, ge=0, description="Repairs that the rule `latest` asks for.")
    gate_episodes: int = Field(500, ge=2, description="Fresh episodes on which the rule `bound` looks at a policy.")
    min_episodes: int = Field(0, ge=0, description="Training episodes of one order before the gate may end it.")
    stop_when_compliant: bool = Field(False, description="Stop as soon as the gate is passed.")

    def accepts(self, shown: Compliance) -> bool:
        """`bound`: on evaluation episodes."""
        enough = shown.compliance.count >= self.min_judged
        return enough and shown.lower_bound is not None and shown.lower_bound >= self.compliance_threshold

    def confirms(self, counts: "Counts", number: int) -> bool:
        """`bound`: on other evaluation episodes, after a look accepted; the training's confirmation of this number, from 1.

        It may err with probability 5 % / (n (n + 1)): summed over any number of confirmations, 5 % at most.
        """
        bound = lower_bound(counts, 1 - (1 - CONFIDENCE) / (number * (number + 1)))
        return counts.judged.sum() >= self.min_judged and bound is not None and bound >= self.compliance_threshold

    def accepts_latest(self, latest: "Counts") -> bool:
        """`latest`: one episode per environment. Episodes without a judged repair have no compliance and do not count."""
        judged = latest.judged > 0
        if latest.repairs.sum() < self.min_repairs or not judged.any():
            return False
        return bool((latest.compliant[judged] / latest.judged[judged]).mean() >= self.compliance_threshold)

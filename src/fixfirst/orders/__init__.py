"""Orders: which unit types to fix first, whether a repair keeps to it, what a policy must show, and how orders rank."""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.orders.compliance import CONFIDENCE, DEFAULT_JUDGING, Compliance, Judging, summarise
    from fixfirst.orders.distributions import normal_quantile, t_cdf, t_quantile
    from fixfirst.orders.gate import Gate
    from fixfirst.orders.judging import Counts, Judgement, delta_reward, held_mask, judge, penalty_reward
    from fixfirst.orders.pricing import Prices, Swap, price, price_swaps, standard_errors
    from fixfirst.orders.ranking import Ranked, Ranking, merge, rank, training_spread
    from fixfirst.orders.reasoning import Kind, Reason, needy_hosts, reasons
    from fixfirst.orders.shield import Shields, mask_words, no_shield, shield_matrices, shields_of
    from fixfirst.orders.workflow import FIVE_TYPES, NAMED_ORDERS, UnitScheme, Workflow, all_workflows
else:
    __getattr__, __dir__ = offers(__name__)

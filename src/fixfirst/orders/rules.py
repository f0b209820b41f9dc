"""When a judged repair is in order.

rule           a judged repair is compliant iff
no_higher      no unit type ranked above the repaired one needs repair
top            the repaired unit type is the highest one that needs repair
fixed_types    all unit types ranked above were already the target of some repair in this episode (every repair is judged)
"""

from typing import Literal, get_args

Rule = Literal["no_higher", "top", "fixed_types"]
RULES = get_args(Rule)
NO_HIGHER, TOP, FIXED_TYPES = range(len(RULES))

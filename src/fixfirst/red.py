"""What a red agent of your own is made of (docs/extend.md): all of it can be used in compiled functions.

    import fixfirst as ff
    from fixfirst.red import USER, Verb, any_user, intends

    @ff.red_agent("scanner")
    def scanner(env, chance):
        if env.red_verb == Verb.SLEEP:  # nothing done yet
            intends(env, Verb.DISCOVER, USER)
        else:
            intends(env, Verb.SCAN, any_user(env, chance))

intends(env, verb, target): what red does next. any_user(env, chance): one of those that B_line begins with, in CAGE2 User1
to User4. any_host(env, chance, hosts): one of a set of hosts, bit h = host h, or -1. HOST_ID, USER, ENTERPRISE, OPERATIONAL:
numbers of CAGE2's hosts and subnets, the targets. Of another scenario, `scenario.host_ids["mail1"]` and
`scenario.subnet_ids["hall"]` are constants that a function can use.
"""

from fixfirst.game.attackers import intends
from fixfirst.game.chance import any_user, pick_address as any_host
from fixfirst.game.scenario import CAGE2
from fixfirst.game.state import NO_TARGET, RedVerb as Verb, Success

HOST_ID = dict(CAGE2.host_ids)
ENTERPRISE, OPERATIONAL, USER = CAGE2.subnet_ids.values()

__all__ = ["ENTERPRISE", "HOST_ID", "NO_TARGET", "OPERATIONAL", "USER", "Success", "Verb", "any_host", "any_user", "intends"]

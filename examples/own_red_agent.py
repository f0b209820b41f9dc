"""An attacker of your own, and who copes with it. Compiled on first use: half a minute, once."""

import fixfirst as ff
from fixfirst.red import USER, Success, Verb, any_user, intends


@ff.red_agent("hit_and_run")
def hit_and_run(env, chance):
    """Takes a user host, then makes for another one: exploit after scan, and a new target after every exploit."""
    if env.red_verb == Verb.SLEEP:
        intends(env, Verb.DISCOVER, USER)
    elif env.red_verb == Verb.SCAN and env.red_success == Success.TRUE:
        intends(env, Verb.EXPLOIT, env.red_target)
    else:
        intends(env, Verb.SCAN, any_user(env, chance))


if __name__ == "__main__":
    for defender in ("sleep", "react-remove", "react-restore", "champion-current"):
        (shown,) = ff.evaluate(defender, red_agent="hit_and_run", steps=100, episodes=500, quiet=True)
        print(f"{defender:16} {shown.mean:8.2f} [{shown.low:.2f}, {shown.high:.2f}]")

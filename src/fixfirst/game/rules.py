"""The rules of CAGE Challenge 2, compiled: what blue, green and red do, what it costs, what blue sees.

`step_one` is the table of contents: one turn as a list of phases. A phase changes only the record `env` (STATE_DTYPE)
it is given; randomness comes from the record `chance` (CHANCE_DTYPE), which is made ready for the turn first. Numbers of
hosts, ports and exploits are those of `scenario.py`; sets of them are bit masks. How red decides is in `attackers.py`;
`docs/model.md` tells all of it in words. Where a choice is hard to foresee, values are selected rather than branches taken:
a wrong guess costs about a fifth of a turn.
"""

import numpy as np

from fixfirst.base.compile import called, compiled, inlined
from fixfirst.game import chance as dice
from fixfirst.game.attackers import ENTERPRISE_UNITS, decide_red
from fixfirst.game.parts import BITS_PER_HOST, GUESSED_PASSWORD, NO_PASSWORD, NOTHING, ROOT_SHELL
from fixfirst.game.scenario import CAGE2, OPERATIONAL, USER
from fixfirst.game.state import NO_TARGET, OTService, RedVerb, Success
from fixfirst.game.tables import (
    ACTION_HOST,
    ACTION_VERB,
    ANY_SESSION_COSTS,
    CALLBACK_OUTRANKS_SCAN,
    DECOY_CATCHES,
    DECOY_NEEDS_FREE,
    DECOY_OPENS,
    EIGHT_BYTES,
    EXPLOIT_PORT,
    FOOTHOLD,
    HALF,
    HALF_BITS,
    HALF_COST,
    HEAVIEST_EXPLOIT,
    HOST_SUBNET,
    NUM_ACTIONS,
    NUM_HOSTS,
    OBSERVATION_BITS,
    ON_REAL_SERVICE,
    OT_SERVER,
    OTHER_EXPLOITS,
    REAL_PORTS,
    REMOVE_REPORTS_RESULT,
    RESTORE_PATCHES_SMTP,
    REVEALED_HOST,
    SCANS_ACCUMULATE,
    SMTP_HOSTS,
    SUBNET_HOSTS,
    VERBS,
)

MONITOR, ANALYSE, REMOVE, RESTORE = (VERBS.index(verb) for verb in ("Monitor", "Analyse", "Remove", "Restore"))
FIRST_DECOY = REMOVE + 1  # the decoys' verbs lie between Remove and Restore
HARAKA, SSH_BRUTE_FORCE = (CAGE2.exploit_names.index(name) for name in ("HarakaRCE", "SSHBruteForce"))
OT_TENTHS, RESTORE_TENTHS = round(10 * CAGE2.ot_cost), round(10 * CAGE2.restore_cost)

# What the observation says of a host: two bits of activity in this step, two bits of what blue believes.
QUIET, SEEN_SCAN, SEEN_EXPLOIT = 0b00, 0b01, 0b11
BELIEVED_CLEAN, BELIEVED_UNKNOWN, BELIEVED_USER, BELIEVED_PRIVILEGED = 0b00, 0b01, 0b10, 0b11
BELIEFS_MASK = sum(0b1100 << BITS_PER_HOST * host for host in range(NUM_HOSTS))

NEXT_STEP, SAME_STEP, DISABLED = range(3)  # when an ended episode is followed by a new one


# ---------------------------------------------------------------- one turn
# A loop over environments makes the turn's chances ready (`chance.py: begin_turn`), lets red decide (`attackers.py:
# decide_red`, or whoever else plays red), and steps. All three are inlined there: as calls, a turn would be a tenth slower.


@inlined
def step_one(env, blue_action, red_verb, red_target, chance, variant, green_active, max_steps):
    """Play one turn: blue, green, red, then reward and what blue sees. Return the reward in tenths."""
    malware_before = env.malware
    decoy_host = apply_blue(env, blue_action, variant)
    green_target = apply_green(env, chance) if green_active else NO_TARGET
    red_noise = apply_red(env, red_verb, red_target, chance, variant)
    reward10 = reward_tenths(env, variant)
    observe(env, malware_before, decoy_host, green_target, red_noise, variant)
    env.step += 1
    env.return10 += reward10
    env.ended = 0 < max_steps <= env.step  # 0: no end
    return reward10


@called
def reset_one(env, chance, red_odds):
    """Begin a new episode: red holds the foothold and knows its own subnet, blue knows nothing."""
    env.step = 0
    env.return10 = 0
    env.ended = False
    dice.begin_turn(env, chance)
    env.privileged = 1 << FOOTHOLD
    env.removable = 0
    env.stubborn = 0
    env.malware = 0
    env.patched = 0
    env.ot = OTService.RUNNING
    for host in range(NUM_HOSTS):
        env.decoys[host] = 0
        env.remembered[host] = 0
    env.ot_known = False
    env.red_verb = RedVerb.SLEEP
    env.red_target = NO_TARGET
    env.red_success = Success.UNKNOWN
    env.red_exploit = -1
    env.red_met = False
    env.red_wish = -1
    env.scan_answered = False
    env.bline_stage = 0
    env.bline_user = NO_TARGET
    env.bline_seen_server = False
    env.known_subnets = 1 << USER
    env.explored_subnets = 0
    env.known_hosts = 1 << FOOTHOLD
    env.scanned = 0
    env.exploited = 0
    env.escalated = 0
    env.breached = 0
    env.lost = 0
    env.failed = 0
    env.failed_again = 0
    env.resisted = 0
    env.impact_reported = False
    env.sleeps = 0
    env.observation = 0
    env.blue_action = 0
    env.blue_success = Success.UNKNOWN
    env.red_agent = dice.red_agent_of_episode(env, chance, red_odds)


# ---------------------------------------------------------------- blue


@inlined
def apply_blue(env, action, variant):
    """Carry out blue's action on the true state. Return the host that got a decoy in this step, or NO_TARGET."""
    verb, host = ACTION_VERB[action], ACTION_HOST[action]
    env.blue_action = action
    env.blue_success = Success.UNKNOWN if host < 0 and verb != MONITOR else Success.TRUE
    if verb == REMOVE:
        if REMOVE_REPORTS_RESULT[variant] and not env.removable >> host & 1:
            env.blue_success = Success.FALSE
        env.removable &= ~(1 << host)
    elif verb == RESTORE:
        restore(env, host, variant)
    elif verb >= FIRST_DECOY:
        placed = place_decoy(env, verb - FIRST_DECOY, host, variant)
        env.blue_success = Success.TRUE if placed else Success.FALSE
        return host if placed else NO_TARGET
    return NO_TARGET


@inlined
def restore(env, host, variant):
    """Rebuild a host: sessions, files and decoys vanish. Red cannot be driven off its foothold."""
    keep = ~(1 << host)
    if host != FOOTHOLD:
        env.privileged &= keep
    env.removable &= keep
    env.stubborn &= keep
    env.malware &= keep
    env.decoys[host] = 0
    if host == OT_SERVER:
        env.ot = OTService.RESTORED  # Restore makes Impact harmless: see `impact`
    if RESTORE_PATCHES_SMTP[variant]:
        env.patched |= (1 << host) & SMTP_HOSTS


@inlined
def place_decoy(env, decoy, host, variant):
    """Place a fake service where the operating system suits it and its port is free. Return whether it was placed."""
    opens = DECOY_OPENS[variant, decoy, host]
    if listening(env, host, variant) & DECOY_NEEDS_FREE[variant, decoy]:
        opens = 0
    env.decoys[host] |= opens
    return opens != 0


@inlined
def listening(env, host, variant):
    """Return the ports open on a host."""
    return REAL_PORTS[variant, host] | env.decoys[host]


# ---------------------------------------------------------------- green


@inlined
def apply_green(env, chance):
    """Let green sleep or scan the ports of a random host. Return that host, or NO_TARGET."""
    return dice.green_host(env, chance) if dice.green_scans(env, chance) else NO_TARGET


# ---------------------------------------------------------------- red acts

# The network events an action leaves on its target: (how many, set of local ports, did a reverse shell call back?)
SILENCE = (0, 0, False)
BRUTE_FORCE_EVENTS = 10


@inlined
def apply_red(env, verb, target, chance, variant):
    """Carry out red's action on the state blue has just changed. Return the events it leaves on its target."""
    env.red_verb = verb
    env.red_target = target
    env.red_exploit = -1
    noise = SILENCE
    if verb == RedVerb.DISCOVER:
        discover(env, target)
    elif verb == RedVerb.SCAN:
        noise = scan(env, target, variant)
    elif verb == RedVerb.EXPLOIT:
        noise = exploit(env, target, chance, variant)
    elif verb == RedVerb.ESCALATE:
        escalate(env, target)
    elif verb == RedVerb.IMPACT:
        impact(env)
    else:
        env.red_success = Success.UNKNOWN
    env.red_met = noise[0] > 0
    return noise


@inlined
def held(env):
    """Return the hosts on which red has a session of any kind."""
    return env.privileged | env.removable | env.stubborn


@inlined
def reachable(env, subnet):
    """Return whether red reaches a subnet: the operational one only while it holds an enterprise host."""
    return subnet != OPERATIONAL or held(env) & ENTERPRISE_UNITS != 0


@inlined
def discover(env, subnet):
    """Let red learn the addresses of a whole subnet; blue sees nothing."""
    if not reachable(env, subnet):
        env.red_success = Success.FALSE
        return
    env.red_success = Success.TRUE
    env.known_subnets |= 1 << subnet
    env.known_hosts |= SUBNET_HOSTS[subnet]


@inlined
def scan(env, host, variant):
    """Scan the ports of a host: always reported as a success, even when nothing answers. Return its events."""
    env.red_success = Success.TRUE
    env.scan_answered = reachable(env, HOST_SUBNET[host])
    if not env.scan_answered:
        return SILENCE
    ports = listening(env, host, variant)
    env.remembered[host] = (env.remembered[host] | ports) if SCANS_ACCUMULATE[variant] else ports
    return scan_events(ports)


@inlined
def scan_events(ports):
    """Return one event per open port. Several sockets on one port never change what blue sees: a port counts once."""
    return dice.size(ports), ports, False


@inlined
def exploit(env, host, chance, variant):
    """Attack with an exploit that fits the ports red remembers; they may have changed since. Return its events."""
    env.red_success = Success.FALSE
    if env.remembered[host] == 0:
        return SILENCE
    weapon = choose_exploit(env, env.remembered[host], chance) if env.red_wish < 0 else env.red_wish
    env.red_exploit = weapon
    if weapon < 0 or not reachable(env, HOST_SUBNET[host]):
        return SILENCE

    port = EXPLOIT_PORT[weapon]
    finds = ON_REAL_SERVICE[variant, host, weapon]  # real services answer before decoys
    if finds == NOTHING:
        if not (env.decoys[host] & port and DECOY_CATCHES[variant, host, weapon]):
            return SILENCE
        return (BRUTE_FORCE_EVENTS if weapon == SSH_BRUTE_FORCE else 2), port, False
    if finds == NO_PASSWORD:
        return BRUTE_FORCE_EVENTS, port, False
    if weapon == HARAKA and env.patched >> host & 1:
        return 1, port, False

    env.red_success = Success.TRUE
    if finds == GUESSED_PASSWORD:
        gain_session(env, host, False, False)
        return BRUTE_FORCE_EVENTS + 1, port, False
    env.malware |= 1 << host
    detected = dice.shell_detected(env, chance)
    gain_session(env, host, finds == ROOT_SHELL, detected)
    return (2 if detected else 1), port, detected


@inlined
def choose_exploit(env, ports, chance):
    """Return, three times in four, the heaviest exploit that fits the ports, else one of the others; -1 if none fits."""
    heaviest, others = HEAVIEST_EXPLOIT[ports], OTHER_EXPLOITS[ports]
    if others == 0:
        return heaviest
    other = dice.other_exploit(env, chance, others)
    return heaviest if dice.takes_top_exploit(env, chance) else other


@inlined
def gain_session(env, host, as_root, detected):
    """Give red a session; next to a privileged one a user-level one changes nothing."""
    bit = 1 << host
    if as_root:
        become_root(env, bit)
    elif not env.privileged & bit:
        if detected:
            env.removable |= bit  # blue knows its process id
        else:
            env.stubborn |= bit


@inlined
def become_root(env, bit):
    env.privileged |= bit
    env.removable &= ~bit
    env.stubborn &= ~bit


@inlined
def escalate(env, host):
    """Turn any session into root, without fail and unseen; red learns what the host knows."""
    bit = 1 << host
    if not held(env) & bit:
        env.red_success = Success.FALSE
        return
    env.red_success = Success.TRUE
    if not env.privileged & bit:
        become_root(env, bit)
        env.malware |= bit
    env.known_subnets |= 1 << HOST_SUBNET[host]
    env.known_hosts |= bit | REVEALED_HOST[host]
    if host == OT_SERVER:
        env.ot_known = True


@inlined
def impact(env):
    """Stop the OT service. A service that was ever restored reports success and keeps running."""
    if not (held(env) >> OT_SERVER & 1 and env.ot_known):
        env.red_success = Success.FALSE
        return
    env.red_success = Success.TRUE
    if env.ot == OTService.RUNNING:
        env.ot = OTService.STOPPED


# ---------------------------------------------------------------- what it costs and what blue sees


@inlined
def reward_tenths(env, variant):
    """Return minus the price of this turn: privileged hosts, a stopped OT service, and blue's own Restore."""
    charged = held(env) if ANY_SESSION_COSTS[variant] else env.privileged
    cost = HALF_COST[0, charged & HALF] + HALF_COST[1, charged >> HALF_BITS & HALF]
    if env.ot == OTService.STOPPED:
        cost += OT_TENTHS
    if ACTION_VERB[env.blue_action] == RESTORE:
        cost += RESTORE_TENTHS
    return -cost


@inlined
def observe(env, malware_before, decoy_host, green_target, red_noise, variant):
    """Write blue's view: its own repairs, then this turn's events host by host, then what Analyse found."""
    verb, acted_on = ACTION_VERB[env.blue_action], ACTION_HOST[env.blue_action]
    view = np.int64(env.observation) & BELIEFS_MASK
    if verb == RESTORE:
        view = believe(view, acted_on, BELIEVED_CLEAN)
    elif verb == REMOVE and view >> BITS_PER_HOST * acted_on & 0b1100:
        view = believe(view, acted_on, BELIEVED_UNKNOWN)

    # Green's scan is counted here: no port opens or closes between its turn and now.
    red_host = env.red_target if red_noise[0] > 0 else NO_TARGET
    if red_host >= 0:
        events, ports, callback = red_noise
        if green_target == red_host:
            green_events, green_ports, _ = scan_events(listening(env, green_target, variant))
            events += green_events
            ports |= green_ports
        view = notice(view, red_host, activity(events, ports, callback, decoy_host == red_host, variant))
    if green_target >= 0 and green_target != red_host:
        events, ports, callback = scan_events(listening(env, green_target, variant))
        view = notice(view, green_target, activity(events, ports, callback, decoy_host == green_target, variant))

    if verb == ANALYSE and malware_before >> acted_on & 1:
        view = believe(view, acted_on, BELIEVED_PRIVILEGED)
    env.observation = view


@inlined
def activity(events, ports, callback, decoy_placed, variant):
    """Return how a host's events of one turn look to blue.

    A decoy placed in the same turn stands first in the list without a port: it can hide a small event, or turn a pair
    of events into an alarm. The far end of a reverse shell counts as one more port.
    """
    entries = events + (1 if decoy_placed else 0)
    distinct_ports = dice.size(ports) + (1 if callback else 0)
    seen = QUIET if decoy_placed else SEEN_SCAN
    if callback | (entries >= 3) & (distinct_ports == 1):
        seen = SEEN_EXPLOIT
    if (entries >= 3) & (distinct_ports >= 3):
        seen = SEEN_SCAN
    if callback & CALLBACK_OUTRANKS_SCAN[variant]:
        seen = SEEN_EXPLOIT
    return seen


@inlined
def notice(view, host, seen):
    """Enter an activity into the view; an exploit makes blue believe in a user-level intruder."""
    view |= seen << BITS_PER_HOST * host
    return believe(view, host, BELIEVED_USER) if seen == SEEN_EXPLOIT else view


@inlined
def believe(view, host, belief):
    shift = BITS_PER_HOST * host + 2
    return view & ~(0b11 << shift) | belief << shift


# ---------------------------------------------------------------- the whole batch
# N environments. Inputs: states [N] and chances [N] records, actions [N] int64, red_odds [N, agents] cumulative, own [256]
# addresses of users' own attackers (`attackers.py: own_addresses`).
# Outputs, all overwritten: observations [N, 52] int8, words [N] uint64, access [N, 13] uint8, rewards10 [N] int32.


@compiled
def seed_batch(chances, seeds, environments):
    """Give every environment its key for free draws: seeds [N] uint64, environments [N] int64."""
    for i in range(len(chances)):
        chances[i].key = dice.environment_key(seeds[i], environments[i])
        chances[i].recorded = False


@compiled
def reset_batch(states, chances, red_odds, mask, observations, words, access):
    """Begin a new episode in the environments of `mask` [N] bool; write the views of all of them."""
    for i in range(len(states)):
        if mask[i]:
            reset_one(states[i], chances[i], red_odds[i])
        words[i] = states[i].observation
        show(states[i], observations[i], access[i])


@compiled
def step_batch(
    states,
    chances,
    red_odds,
    own,
    actions,
    variant,
    green_active,
    max_steps,
    autoreset,
    observations,
    words,
    access,
    rewards10,
    ended,  # [N] bool: the step limit was reached in this step
    final_observations,  # [N, 52] int8, SAME_STEP only: the last view of an episode that ended
    final_access,  # [N, 13] uint8, likewise
    final_returns10,  # [N] int32, where `ended`
    final_lengths,  # [N] int32, where `ended`
):
    """Play one turn of every environment. Return how many episodes ended, or -1 - i if action i is out of range.

    With a bad action nothing is changed. With NEXT_STEP, an environment whose episode ended in the last step ignores its
    action and begins a new one, at reward 0; with SAME_STEP it begins at once and the last view goes into `final_*`.
    """
    for i in range(len(actions)):
        if not 0 <= actions[i] < NUM_ACTIONS:
            return -1 - i
    num_ended = 0
    for i in range(len(states)):
        env, chance = states[i], chances[i]
        if env.ended and autoreset == NEXT_STEP:
            next_episode(env, chance, red_odds[i])
            rewards10[i] = 0
            ended[i] = False
        else:
            dice.begin_turn(env, chance)
            red_verb, red_target = decide_red(env, chance, own)
            rewards10[i] = step_one(env, actions[i], red_verb, red_target, chance, variant, green_active, max_steps)
            ended[i] = env.ended
            if env.ended:
                num_ended += 1
                final_returns10[i] = env.return10
                final_lengths[i] = env.step
                if autoreset == SAME_STEP:
                    show(env, final_observations[i], final_access[i])
                    next_episode(env, chance, red_odds[i])
        words[i] = env.observation
        show(env, observations[i], access[i])
    return num_ended


@called
def next_episode(env, chance, red_odds):
    env.episode += 1
    reset_one(env, chance, red_odds)


@called
def show(env, observation, access):
    """Write what blue sees [52] and the true access per host [13]: 0 none, 1 user, 2 root."""
    view = np.int64(env.observation)
    for start in range(0, OBSERVATION_BITS, 8):
        eight = EIGHT_BYTES[view >> start & 255]
        for k in range(min(8, OBSERVATION_BITS - start)):
            observation[start + k] = eight >> np.uint64(8 * k)
    some, root = held(env), env.privileged
    for start in range(0, NUM_HOSTS, 8):
        eight = EIGHT_BYTES[some >> start & 255] + EIGHT_BYTES[root >> start & 255]
        for k in range(min(8, NUM_HOSTS - start)):
            access[start + k] = eight >> np.uint64(8 * k)

"""The rules of CAGE Challenge 2, compiled: what blue, green and red do, what it costs, what blue sees.

`step_one` is the table of contents: one turn as a list of phases. A phase changes only the record `env` (`state_dtype`)
it is given; randomness comes from the record `chance` (`chance_dtype`), which is made ready for the turn first, and what is
played from the record `tables` (`tables_of`). Sets of hosts and ports are bit masks. How red decides is in `attackers.py`;
`docs/model.md` tells all of it in words. Where a choice is hard to foresee, values are selected rather than branches taken:
a wrong guess costs about a fifth of a turn.
"""

import numpy as np

from fixfirst.base.compile import called, compiled, inlined
from fixfirst.game import calls, chance as dice, tables as facts
from fixfirst.game.attackers import decide_red
from fixfirst.game.parts import (
    BITS_PER_HOST,
    EXPLOITS,
    GUESSED_PASSWORD,
    GUESSED_ROOT_PASSWORD,
    IMMUNE,
    NO_PASSWORD,
    NOTHING,
    ROOT_SHELL,
)
from fixfirst.game.state import NO_TARGET, OTService, RedVerb, Success

HARAKA, SSH_BRUTE_FORCE = ([each.name for each in EXPLOITS].index(n) for n in ("HarakaRCE", "SSHBruteForce"))
HOSTS_PER_WORD = 64 // BITS_PER_HOST

# What the observation says of a host: two bits of activity in this step, two bits of what blue believes.
QUIET, SEEN_SCAN, SEEN_EXPLOIT = 0b00, 0b01, 0b11
BELIEVED_CLEAN, BELIEVED_UNKNOWN, BELIEVED_USER, BELIEVED_PRIVILEGED = 0b00, 0b01, 0b10, 0b11
BELIEFS_MASK = sum(0b1100 << BITS_PER_HOST * host for host in range(HOSTS_PER_WORD))

NEXT_STEP, SAME_STEP, DISABLED = range(3)  # when an ended episode is followed by a new one


# A loop over environments makes the turn's chances ready (`chance.py: begin_turn`), lets red decide (`attackers.py:
# decide_red`, or whoever else plays red), and steps. All three are inlined there: as calls, a turn would be a tenth slower.


@inlined
def step_one(env, tables, blue_action, red_verb, red_target, chance, green_active, max_steps):
    """Play one turn: blue, green, red, then reward and what blue sees. Return the reward in tenths."""
    malware_before = env.malware
    decoy_host = apply_blue(env, tables, blue_action, chance)
    green_target = apply_green(env, tables, chance) if green_active else NO_TARGET
    red_noise = apply_red(env, tables, red_verb, red_target, chance)
    reward10 = reward_tenths(env, tables)
    observe(env, tables, malware_before, decoy_host, green_target, red_noise)
    env.step += 1
    env.return10 += reward10
    env.ended = 0 < max_steps <= env.step  # 0: no end
    return reward10


@called
def reset_one(env, tables, chance, red_odds):
    """Begin a new episode: red holds its first host and knows what it is told, blue knows nothing."""
    env.step = 0
    env.return10 = 0
    env.ended = False
    dice.begin_turn(env, chance)
    env.privileged = tables.start
    env.removable = 0
    env.stubborn = 0
    env.malware = 0
    env.patched = 0
    env.ot = OTService.RUNNING
    for host in range(len(env.decoys)):
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
    env.known_subnets = tables.first_subnets
    env.explored_subnets = 0
    env.known_hosts = tables.first_hosts
    env.known_names = tables.first_names
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
    for word in range(len(env.observation)):
        env.observation[word] = 0
    env.blue_action = 0
    env.blue_success = Success.UNKNOWN
    env.red_agent = dice.red_agent_of_episode(env, chance, red_odds)


@inlined
def apply_blue(env, tables, action, chance):
    """Carry out blue's action on the true state. Return the host that got a decoy in this step, or NO_TARGET."""
    verb, host = tables.action_effect[action], np.int64(tables.action_host[action])
    env.blue_action = action
    env.blue_success = tables.action_success[action]
    if verb == facts.REMOVE:
        if tables.remove_reports_result and not env.removable >> host & 1:
            env.blue_success = Success.FALSE
        env.removable &= ~(1 << host)
    elif verb == facts.RESTORE:
        restore(env, tables, host)
    elif verb >= facts.MISINFORM:
        if verb == facts.MISINFORM:
            placed = misinform(env, tables, host, chance)
        else:
            placed = place_decoy(env, tables, verb - facts.FIRST_DECOY, host)
        env.blue_success = Success.TRUE if placed else Success.FALSE
        return host if placed else NO_TARGET
    return NO_TARGET


@inlined
def restore(env, tables, host):
    """Rebuild a host: sessions, files and decoys vanish. Red cannot be driven off the host it starts from."""
    keep = ~(1 << host)
    env.privileged = env.privileged & keep | tables.start
    env.removable &= keep
    env.stubborn &= keep
    env.malware &= keep
    env.decoys[host] = 0
    if host == tables.target and tables.target_runs_ot:
        env.ot = OTService.RESTORED  # Restore makes Impact harmless: see `impact`
    if tables.restore_patches_smtp:
        env.patched |= (1 << host) & tables.smtp_hosts


@inlined
def place_decoy(env, tables, decoy, host):
    """Place a fake service where the operating system suits it and its port is free. Return whether it was placed."""
    opens = np.int64(tables.decoy_opens[decoy, host])
    if listening(env, tables, host) & tables.decoy_needs_free[decoy]:
        opens = 0
    env.decoys[host] |= opens
    return opens != 0


@inlined
def misinform(env, tables, host, chance):
    """Place one of the services whose ports are free, whichever chance says. Return whether there was any."""
    ports, free = listening(env, tables, host), 0
    for service in range(len(facts.MISINFORM_PORT)):
        if not ports & facts.MISINFORM_PORT[service]:
            free |= 1 << service
    if free == 0:
        return False
    env.decoys[host] |= facts.MISINFORM_PORT[dice.misinform_service(env, chance, free)]
    return True


@inlined
def listening(env, tables, host):
    """Return the ports open on a host."""
    return np.int64(tables.real_ports[host]) | env.decoys[host]


@inlined
def apply_green(env, tables, chance):
    """Let green sleep or scan the ports of a random host. Return that host, or NO_TARGET."""
    return dice.green_host(env, chance, tables) if dice.green_scans(env, chance) else NO_TARGET


# The network events an action leaves on its target: (how many, set of local ports, did a reverse shell call back?)
SILENCE = (0, 0, False)
BRUTE_FORCE_EVENTS = 10


@inlined
def apply_red(env, tables, verb, target, chance):
    """Carry out red's action on the state blue has just changed. Return the events it leaves on its target."""
    env.red_verb = verb
    env.red_target = target
    env.red_exploit = -1
    noise = SILENCE
    if verb == RedVerb.DISCOVER:
        discover(env, tables, target)
    elif verb == RedVerb.SCAN:
        noise = scan(env, tables, target)
    elif verb == RedVerb.EXPLOIT:
        noise = exploit_host(env, tables, target, chance)
    elif verb == RedVerb.ESCALATE:
        escalate(env, tables, target)
    elif verb == RedVerb.IMPACT:
        impact(env, tables)
    else:
        env.red_success = Success.UNKNOWN
    env.red_met = noise[0] > 0
    return noise


@inlined
def held(env):
    """Return the hosts on which red has a session of any kind."""
    return env.privileged | env.removable | env.stubborn


@inlined
def reachable(env, tables, subnet):
    """Return whether red gets into a subnet: some are closed, and some only while it holds one of certain hosts."""
    gated = tables.gated_subnets if held(env) & tables.gates else 0
    return (tables.open_subnets | gated) >> subnet & 1 != 0


@inlined
def discover(env, tables, subnet):
    """Let red learn the addresses of a whole subnet; blue sees nothing."""
    if not reachable(env, tables, subnet):
        env.red_success = Success.FALSE
        return
    env.red_success = Success.TRUE
    env.known_subnets |= 1 << subnet
    env.known_hosts |= tables.subnet_hosts[subnet]


@inlined
def scan(env, tables, host):
    """Scan the ports of a host: always reported as a success, even when nothing answers. Return its events."""
    env.red_success = Success.TRUE
    ports = listening(env, tables, host) & tables.passes[host]
    env.scan_answered = ports != 0 and reachable(env, tables, tables.host_subnet[host])
    if not env.scan_answered:
        return SILENCE
    env.remembered[host] = (env.remembered[host] | ports) if tables.scans_accumulate else ports
    return scan_events(ports)


@inlined
def scan_events(ports):
    """Return one event per open port. Several sockets on one port never change what blue sees: a port counts once."""
    return dice.size(ports), ports, False


@inlined
def exploit_host(env, tables, host, chance):
    """Attack with an exploit that fits the ports red remembers; they may have changed since. Return its events."""
    env.red_success = Success.FALSE
    if env.remembered[host] == 0:
        return SILENCE
    ports = env.remembered[host] & facts.EXPLOITED_PORTS
    weapon = choose_exploit(env, ports, chance) if env.red_wish < 0 else env.red_wish
    env.red_exploit = weapon
    if weapon < 0 or not reachable(env, tables, tables.host_subnet[host]):
        return SILENCE

    port = facts.EXPLOIT_PORT[weapon]
    finds = tables.meets[host, weapon]  # real services answer before decoys
    if finds == NOTHING:
        if not (env.decoys[host] & port and tables.decoy_catches[host, weapon]):
            return SILENCE
        return (BRUTE_FORCE_EVENTS if weapon == SSH_BRUTE_FORCE else 2), port, False
    if finds == NO_PASSWORD:
        return BRUTE_FORCE_EVENTS, port, False
    if finds == IMMUNE or (weapon == HARAKA and env.patched >> host & 1):
        return 1, port, False

    env.red_success = Success.TRUE
    env.known_names |= 1 << host
    env.known_hosts |= tables.start
    if finds == GUESSED_PASSWORD or finds == GUESSED_ROOT_PASSWORD:
        gain_session(env, host, finds == GUESSED_ROOT_PASSWORD, False)
        return BRUTE_FORCE_EVENTS + 1, port, False
    env.malware |= 1 << host
    detected = dice.shell_detected(env, chance, tables)
    gain_session(env, host, finds == ROOT_SHELL, detected and tables.watched >> host & 1 != 0)
    return (2 if detected else 1), port, detected


@inlined
def choose_exploit(env, ports, chance):
    """Return, three times in four, the heaviest exploit that fits the ports, else one of the others; -1 if none fits."""
    heaviest, others = facts.HEAVIEST_EXPLOIT[ports], facts.OTHER_EXPLOITS[ports]
    if others == 0:
        return heaviest
    other = dice.other_exploit(env, chance, others)
    return heaviest if dice.takes_top_exploit(env, chance) else other


@inlined
def gain_session(env, host, as_root, noted):
    """Give red a session; next to a privileged one a user-level one changes nothing."""
    bit = 1 << host
    if as_root:
        become_root(env, bit)
    elif not env.privileged & bit:
        if noted:
            env.removable |= bit  # blue knows its process id
        else:
            env.stubborn |= bit


@inlined
def become_root(env, bit):
    env.privileged |= bit
    env.removable &= ~bit
    env.stubborn &= ~bit


@inlined
def escalate(env, tables, host):
    """Turn any session into root, without fail and unseen; red learns what the host knows."""
    bit = 1 << host
    if not held(env) & bit:
        env.red_success = Success.FALSE
        return
    env.red_success = Success.TRUE
    if not env.privileged & bit:
        become_root(env, bit)
        env.malware |= bit
    env.known_subnets |= tables.reveals_subnets[host]
    env.known_hosts |= tables.reveals_hosts[host]
    env.known_names |= tables.reveals_names[host]
    if tables.reveals_ot[host]:
        env.ot_known = True


@inlined
def impact(env, tables):
    """Stop the OT service. A service that was ever restored reports success and keeps running."""
    if not (tables.target_runs_ot and env.ot_known and held(env) >> tables.target & 1):
        env.red_success = Success.FALSE
        return
    env.red_success = Success.TRUE
    if env.ot == OTService.RUNNING:
        env.ot = OTService.STOPPED


@inlined
def reward_tenths(env, tables):
    """Return minus the price of this turn: privileged hosts, a stopped OT service, and blue's own action."""
    charged = held(env) if tables.any_session_costs else np.int64(env.privileged)
    cost = np.int64(tables.action_tenths[env.blue_action])
    for eight in range(len(tables.cost)):
        cost += tables.cost[eight, charged >> 8 * eight & 255]
    if env.ot == OTService.STOPPED:
        cost += tables.ot_tenths
    return -cost


@inlined
def observe(env, tables, malware_before, decoy_host, green_target, red_noise):
    """Write blue's view: its own repairs, then this turn's events host by host, then what Analyse found."""
    action = env.blue_action
    verb, acted_on = tables.action_verb[action], np.int64(tables.action_host[action])
    for word in range(len(env.observation)):
        env.observation[word] &= np.uint64(BELIEFS_MASK)
    if verb == facts.RESTORE:
        believe(env, tables, acted_on, BELIEVED_CLEAN)
    elif verb == facts.REMOVE and believed(env, tables, acted_on) != BELIEVED_CLEAN:
        believe(env, tables, acted_on, BELIEVED_UNKNOWN)

    # Green's scan is counted here: no port opens or closes between its turn and now.
    red_host = env.red_target if red_noise[0] > 0 else NO_TARGET
    if red_host >= 0:
        events, ports, callback = red_noise
        if green_target == red_host:
            green_events, green_ports, _ = scan_events(listening(env, tables, green_target))
            events += green_events
            ports |= green_ports
        notice(env, tables, red_host, activity(tables, events, ports, callback, decoy_host == red_host))
    if green_target >= 0 and green_target != red_host:
        events, ports, callback = scan_events(listening(env, tables, green_target))
        notice(env, tables, green_target, activity(tables, events, ports, callback, decoy_host == green_target))

    if tables.action_effect[action] == facts.ANALYSE and malware_before >> acted_on & 1:
        believe(env, tables, acted_on, BELIEVED_PRIVILEGED)


@inlined
def activity(tables, events, ports, callback, decoy_placed):
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
    if callback & tables.callback_outranks_scan:
        seen = SEEN_EXPLOIT
    return seen


@inlined
def notice(env, tables, host, seen):
    """Enter an activity where blue watches; an exploit makes blue believe in a user-level intruder."""
    if tables.watched >> host & 1:
        word, shift = where_seen(env, tables, host)
        view = np.int64(env.observation[word]) | seen << shift
        if seen == SEEN_EXPLOIT:
            view = view & ~(0b11 << shift + 2) | BELIEVED_USER << shift + 2
        env.observation[word] = view


@inlined
def believe(env, tables, host, belief):
    """Enter what blue believes of a host that it sees."""
    word, shift = where_seen(env, tables, host)
    env.observation[word] = np.int64(env.observation[word]) & ~(0b11 << shift + 2) | belief << shift + 2


@inlined
def believed(env, tables, host):
    """Return what blue believes of a host that it sees."""
    word, shift = where_seen(env, tables, host)
    return np.int64(env.observation[word]) >> shift + 2 & 0b11


@inlined
def where_seen(env, tables, host):
    """Return the word, and the first bit of it, in which a host stands that blue sees."""
    place = np.int64(tables.place[host])
    if len(env.observation) == 1:  # known when this is compiled
        return 0, BITS_PER_HOST * place
    return place // HOSTS_PER_WORD, BITS_PER_HOST * (place % HOSTS_PER_WORD)


# N environments. Inputs: states [N] and chances [N] records, block [1] the record of tables, actions [N] int64, red_odds
# [N, agents] cumulative, own [256] addresses of users' own attackers (`attackers.py: own_addresses`).
# Outputs, all overwritten, of H hosts of which blue sees L in W words: observations [N, 4 L] int8, words [N, W] uint64,
# access [N, H] uint8, rewards10 [N] int32.


@compiled
def seed_batch(chances, seeds, environments):
    """Give every environment its key for free draws: seeds [N] uint64, environments [N] int64."""
    for i in range(len(chances)):
        chances[i].key = dice.environment_key(seeds[i], environments[i])
        chances[i].recorded = False


@compiled
def reset_batch(states, block, chances, red_odds, mask, observations, words, access):
    """Begin a new episode in the environments of `mask` [N] bool; write the views of all of them."""
    tables = block[0]
    for i in range(len(states)):
        if mask[i]:
            reset_one(states[i], tables, chances[i], red_odds[i])
        show(states[i], tables, observations, words, access, i)


@compiled
def step_batch(
    states,
    block,
    chances,
    red_odds,
    own,
    actions,
    green_active,
    max_steps,
    autoreset,
    observations,
    words,
    access,
    rewards10,
    ended,  # [N] bool: the step limit was reached in this step
    final_observations,  # [N, 4 L] int8, SAME_STEP only: the last view of an episode that ended
    final_access,  # [N, H] uint8, likewise
    final_returns10,  # [N] int32, where `ended`
    final_lengths,  # [N] int32, where `ended`
):
    """Play one turn of every environment. Return how many episodes ended, or -1 - i if action i is out of range.

    With a bad action nothing is changed. With NEXT_STEP, an environment whose episode ended in the last step ignores its
    action and begins a new one, at reward 0; with SAME_STEP it begins at once and the last view goes into `final_*`.
    """
    tables = block[0]
    for i in range(len(actions)):
        if not 0 <= actions[i] < tables.num_actions:
            return -1 - i
    num_ended = 0
    for i in range(len(states)):
        env, chance = states[i], chances[i]
        if env.ended and autoreset == NEXT_STEP:
            next_episode(env, tables, chance, red_odds[i])
            rewards10[i] = 0
            ended[i] = False
        else:
            dice.begin_turn(env, chance)
            red_verb, red_target = decide_red(env, tables, chance, own)
            rewards10[i] = step_one(env, tables, actions[i], red_verb, red_target, chance, green_active, max_steps)
            ended[i] = env.ended
            if env.ended:
                num_ended += 1
                final_returns10[i] = env.return10
                final_lengths[i] = env.step
                if autoreset == SAME_STEP:
                    show(env, tables, final_observations, words, final_access, i)
                    next_episode(env, tables, chance, red_odds[i])
        show(env, tables, observations, words, access, i)
    return num_ended


@called
def next_episode(env, tables, chance, red_odds):
    env.episode += 1
    reset_one(env, tables, chance, red_odds)


@inlined
def show(env, tables, observations, words, access, i):
    """Write what blue sees [4 L], also in words [W], and the true access per host [H]: 0 none, 1 user, 2 root."""
    for word in range(words.shape[1]):
        view = env.observation[word]
        words[i, word] = view
        _write_bits(observations, i, 64 * word, min(observations.shape[1] - 64 * word, 64), view, np.uint64(0))
    _write_bits(access, i, 0, access.shape[1], np.uint64(held(env)), np.uint64(env.privileged))


@inlined
def _write_bits(rows, i, first, count, ones, more):
    """Write so many bits, the sums of those of two numbers, into the columns of row i from `first` on."""
    for k in range(count >> 3):
        both = facts.EIGHT_BYTES[ones >> np.uint64(8 * k) & EIGHT] + facts.EIGHT_BYTES[more >> np.uint64(8 * k) & EIGHT]
        calls.store_eight(rows, i, first + 8 * k, both)
    if count & 7:
        if count > 8:  # the last eight, some of them again
            last = np.uint64(count - 8)
            calls.store_eight(
                rows, i, first + count - 8, facts.EIGHT_BYTES[ones >> last & EIGHT] + facts.EIGHT_BYTES[more >> last & EIGHT]
            )
        else:
            for k in range(count):
                rows[i, first + k] = (ones >> np.uint64(k) & _ONE) + (more >> np.uint64(k) & _ONE)


_ONE, EIGHT = np.uint64(1), np.uint64(255)

"""CAGE2's names and numbers, short: tests play no other scenario."""

from fixfirst.game.scenario import CAGE2

ACTIONS, NUM_ACTIONS, OBSERVATION_BITS = CAGE2.actions, CAGE2.num_actions, CAGE2.observation_bits
HOSTS, NUM_HOSTS, HOST_NAMES, HOST_ID = CAGE2.hosts, CAGE2.num_hosts, CAGE2.host_names, CAGE2.host_ids
DECOYS, EXPLOIT_NAMES, PORTS = CAGE2.decoys, CAGE2.exploit_names, CAGE2.ports
action_id, ports_mask = CAGE2.action_id, CAGE2.ports_mask
REPAIRED_HOSTS = CAGE2.repaired_hosts  # [145]
SLEEP = action_id("Sleep")


def hosts_mask(*names):
    """The set of these hosts as a bit mask: bit h is host h."""
    return sum(1 << HOST_ID[name] for name in names)

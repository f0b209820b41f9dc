"""Workflows: text, numbers, bits and distances."""

import math

import numpy as np
import pytest
from cage2 import HOST_NAMES

from fixfirst.base.errors import WorkflowError
from fixfirst.orders.order import FIVE_TYPES, NAMED_ORDERS, UnitScheme, Workflow, all_workflows

USER, OP_HOST, OP_SERVER, ENTERPRISE, DEFENDER = range(5)
TEXT = "op_server > enterprise > user > op_host > defender"


def test_all_spellings_of_an_order_mean_the_same_and_some_have_names():
    for comma in ("→", " -> ", ", ", "  >"):
        workflow = Workflow.parse(f" {TEXT} ".replace(" >", comma).upper())
        assert workflow.order == (OP_SERVER, ENTERPRISE, USER, OP_HOST, DEFENDER) and str(workflow) == TEXT
    assert str(Workflow.parse("critical_first")) == "defender > op_server > enterprise > op_host > user"
    assert str(Workflow.parse("reverse")) == "user > op_host > enterprise > op_server > defender"
    assert len({Workflow.parse(name) for name in NAMED_ORDERS}) == 6
    with pytest.raises(WorkflowError, match=r"exactly once.*twice: 'user'"):
        Workflow.parse("user > user > op_host > op_server > enterprise > defender")


def test_there_are_120_orders_with_numbers_that_lead_back_to_them_and_bits():
    """Bit 5 times position plus unit."""
    workflows = list(all_workflows())
    assert len(set(workflows)) == 120
    assert [w.number for w in workflows] == list(range(120))
    assert [Workflow.from_number(n) for n in range(120)] == workflows
    assert str(workflows[0]) == "user > op_host > op_server > enterprise > defender"
    with pytest.raises(WorkflowError, match=r"120 is not in 0..119"):
        Workflow.from_number(120)
    bits = Workflow.parse(TEXT).encode()
    assert bits.dtype == np.int8 and len(bits) == 25
    assert np.flatnonzero(bits).tolist() == [0 + OP_SERVER, 5 + ENTERPRISE, 10 + USER, 15 + OP_HOST, 20 + DEFENDER]


def test_kendall_distance_is_the_share_of_pairs_of_another_sign():
    """Pairs in the order (user, op_host), (user, op_server), ..., (enterprise, defender)."""
    a = Workflow.parse("user > op_host > op_server > enterprise > defender")
    swapped = Workflow.parse("op_host > user > op_server > enterprise > defender")
    reverse = Workflow.parse("defender > enterprise > op_server > op_host > user")
    assert [a.kendall_distance(other) for other in (a, swapped, reverse)] == [0, 0.1, 1]
    assert a.pair_signs().tolist() == [1] * 10 and swapped.pair_signs().tolist() == [-1] + [1] * 9


def test_a_scheme_of_two_groups_from_toml(tmp_path):
    path = tmp_path / "units.toml"
    servers = ["Op_Server0", "Enterprise0", "Enterprise1", "Enterprise2"]
    path.write_text(f"[units]\nservers = {servers}\nrest = {[host for host in HOST_NAMES if host not in servers]}\n")
    scheme = UnitScheme.from_toml(path)
    assert scheme.encoding_bits == 4 and scheme.num_orders == 2
    assert np.flatnonzero(Workflow.parse("rest > servers", scheme).encode()).tolist() == [1, 2]
    assert UnitScheme.from_dict(scheme.as_dict()) == scheme


def test_five_types_partition_the_hosts_and_one_type_per_host_has_13_factorial_orders_and_169_bits():
    assert [len(FIVE_TYPES.hosts(unit)) for unit in range(5)] == [5, 3, 1, 3, 1]
    assert FIVE_TYPES.hosts(USER) == ("User0", "User1", "User2", "User3", "User4")
    assert FIVE_TYPES.hosts(OP_SERVER) == ("Op_Server0",) and FIVE_TYPES.hosts(DEFENDER) == ("Defender",)
    scheme = UnitScheme.per_host()
    assert scheme.num_orders == math.factorial(13) and scheme.encoding_bits == 169
    last = Workflow.from_number(math.factorial(13) - 1, scheme)
    assert last.order == tuple(range(12, -1, -1)) and last.number == math.factorial(13) - 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("x = 1", r"has no table \[units\]"),
        ("units = 3", "a list of hosts per unit type"),
        ('[units]\na = ["User0"]\nb = ["User9"]', "'User9', which is none of Defender"),
        ('[units]\na = ["User0"]\nb = ["User0"]', "User0 is in more than one"),
        ('[units]\na = ["User0"]\nb = ["User1"]', "missing: Defender"),
        (f"[units]\nall = {list(HOST_NAMES)}", "2 to 13 unit types, got 1"),
        (f"[units]\nall = {list(HOST_NAMES)}\nnone = []", "every unit type needs a host"),
        (f'[units]\n"a > b" = {list(HOST_NAMES[1:])}\nc = ["Defender"]', "must be a word"),
        ("[units", "not a TOML file"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_scheme_says_what_is_wrong(tmp_path, content, says):
    path = tmp_path / "units.toml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(WorkflowError, match=says):
        UnitScheme.from_toml(path)

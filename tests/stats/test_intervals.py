"""Intervals of means: SciPy's, and by hand."""

import numpy as np
import pytest
from late import Late

from fixfirst.stats import intervals

stats = Late("scipy.stats")
FIRST, SECOND = [4.0, 5.0, 6.0, 5.5], [0.5, 1.0, 0.2, 1.1, 0.7]


def test_the_mean_of_two_values_and_its_t_interval_which_is_the_mean_where_nothing_varies():
    """1 and 3: mean 2, standard error 1, and t with 1 degree of freedom is 12.706; of one value there is no interval."""
    ends = pytest.approx(2 - 12.706, abs=1e-3), pytest.approx(2 + 12.706, abs=1e-3)
    assert intervals.mean_interval([1.0, 3.0]) == (2.0, *ends)
    assert intervals.estimate([1.0, 3.0]).interval() == ends
    assert intervals.mean_interval([-14.0]) == (-14.0, None, None)
    assert intervals.welch(3.0, [0.0, 0.0], [2, 2]).interval() == (3.0, 3.0) == intervals.estimate([3.0, 3.0]).interval()


def test_the_difference_of_two_means_has_welchs_interval():
    """As SciPy's; of several looks, each is as much surer as Bonferroni asks for."""
    gain = intervals.welch_of(np.mean(FIRST) - np.mean(SECOND), (FIRST, SECOND))
    test = stats.ttest_ind(FIRST, SECOND, equal_var=False)
    for looks in (1, 3):
        ends = test.confidence_interval(1 - 0.05 / looks)
        assert gain.interval(looks) == pytest.approx((ends.low, ends.high))
    assert (gain.low, gain.high) == gain.interval()

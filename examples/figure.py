"""A figure for a paper: two defenders against both red agents, with 95 % intervals. Writes defenders.svg."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import fixfirst as ff

DEFENDERS = {"react-restore": "restores what it sees", "champion-current": "champion"}
STEPS = (30, 50, 100)

figure, axes = plt.subplots(1, 2, figsize=(6.4, 2.6), sharey=True, layout="constrained")
for axis, red_agent in zip(axes, ("b_line", "meander"), strict=True):
    for name, label in DEFENDERS.items():
        rows = ff.evaluate(name, red_agent=red_agent, steps=STEPS, episodes=500, quiet=True)
        means = [row.mean for row in rows]
        axis.errorbar(STEPS, means, yerr=[row.high - row.mean for row in rows], marker="o", capsize=3, label=label)
    axis.set(title=red_agent, xlabel="steps of an episode", xticks=STEPS)
axes[0].set_ylabel("return")
axes[0].legend()
figure.savefig("defenders.svg")
print("defenders.svg")

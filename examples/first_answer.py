"""A search, its answer, and the policy it found. Half a minute; with a tenth of the episodes it says how little it knows."""

import sys

import fixfirst as ff

episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 600_000
run = ff.search(red_agent="b_line", total_episodes=episodes, quiet=True)
print(*run.answer.sentences, sep="\n")
print(*run.answer.swaps, sep="\n")
(shown,) = ff.evaluate(run.best, red_agent="b_line", steps=100, episodes=1_000, quiet=True)
print(f"its policy on fresh episodes: {shown.mean:.2f} [{shown.low:.2f}, {shown.high:.2f}], {run.folder}")

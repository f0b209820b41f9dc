"""Log a training to Weights & Biases (`pip install wandb`). Without `mode="offline"` it is sent at once."""

import wandb

import fixfirst as ff

with wandb.init(project="fixfirst", mode="offline") as board:

    def follow(progress):
        board.log(dict(progress.values), step=progress.episodes)

    run = ff.train(workflow="none", total_episodes=20_000, out="runs/logged", quiet=True, callback=follow)
    board.summary["test return"] = run.evaluation.mean
print(run.evaluation.mean)

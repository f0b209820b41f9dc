"""Tune the learning rate with Optuna (`pip install optuna`), which ends trials that fall behind."""

import optuna

import fixfirst as ff


def objective(trial):
    def fell_behind(progress):
        trial.report(progress.values["return"], progress.episodes)
        return trial.should_prune()

    rate, out = trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True), f"runs/optuna-{trial.number}"
    try:
        run = ff.train(workflow="none", learning_rate=rate, total_episodes=20_000, out=out, quiet=True, callback=fell_behind)
        return run.evaluation.mean
    except ff.Interrupted:
        raise optuna.TrialPruned() from None


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=3)
print(study.best_params)

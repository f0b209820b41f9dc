"""A callback follows a run and may stop it, as Ctrl-C would: `resume` then ends with the same bytes."""

import signal

import pytest
from golden import content
from searches import SHARED, TRAINING

import fixfirst as ff
from fixfirst.learner.training import Training


def result(folder):
    return {path.name: hash_ for path, hash_ in content(folder).items() if path.name == "policy.safetensors"}


def test_a_training_tells_every_update_and_stops_when_asked(tmp_path, trained):
    seen = []

    def stop_after_two(progress):
        seen.append(progress)
        return len(seen) == 2

    with pytest.raises(ff.Interrupted, match="fixfirst resume"):
        ff.train(out=tmp_path / "run", **TRAINING, quiet=True, callback=stop_after_two)
    assert [(p.folder, p.episodes, p.total_episodes, p.training) for p in seen] == [
        (tmp_path / "run", 4, 12, 0),
        (tmp_path / "run", 8, 12, 0),
    ]
    assert all(p.values["return"] <= 0 and len(p.values) > 5 for p in seen)
    ff.resume(tmp_path / "run", quiet=True)
    assert result(tmp_path / "run") == result(trained)


def test_a_search_tells_of_all_its_trainings_and_stops_when_asked(tmp_path, answered):
    seen = []

    def stop_late(progress):
        seen.append(progress)
        return progress.episodes >= 160

    with pytest.raises(ff.Interrupted):
        ff.search(out=tmp_path / "run", **SHARED, quiet=True, workers=1, report=False, callback=stop_late)
    assert {p.training for p in seen} == {0, 1} and seen[-1].episodes >= 160 > seen[-2].episodes
    assert {p.total_episodes for p in seen} == {240} and set(seen[0].values) == {"return"}
    ff.resume(tmp_path / "run", quiet=True, workers=1, report=False)
    assert (tmp_path / "run/answer.json").exists() and ff.load_run(tmp_path / "run").answer == ff.load_run(answered).answer


def test_a_policy_says_what_it_is_in_a_line(answered):
    assert repr(ff.load_policy("champion")) == "Policy(no order; memory full, action set macros)"
    assert repr(ff.load_run(answered).best).startswith("Policy(any order; ")
    shown = ff.load_run(answered)._repr_html_()
    assert shown.startswith("<p>") and shown.count("<table>") == 2


def test_ctrl_c_ends_the_final_test_at_once_and_resume_tests_as_many_episodes(tmp_path, monkeypatch):
    """On CybORG the test takes minutes. How many episodes it has is remembered for `resume`."""
    played = Training.evaluate
    seen = []

    def interrupted(self, purpose, episodes, on_pass):
        def ctrl_c(done):
            seen.append(done)
            signal.raise_signal(signal.SIGINT)
            on_pass(done)

        return played(self, purpose, episodes, on_pass=ctrl_c)

    settings = {"workflow": "none", "n_envs": 4, "max_steps": 10, "total_episodes": 8, "quiet": True}
    monkeypatch.setattr(Training, "evaluate", interrupted)
    with pytest.raises(ff.Interrupted, match="interrupted in the test; go on with: fixfirst resume"):
        ff.train(out=tmp_path / "cut", test_episodes=30, **settings)
    assert len(seen) == 1
    monkeypatch.setattr(Training, "evaluate", played)
    resumed = ff.resume(tmp_path / "cut", quiet=True)
    assert resumed.evaluation == ff.train(out=tmp_path / "whole", test_episodes=30, **settings).evaluation
    assert resumed.evaluation.episodes == 30

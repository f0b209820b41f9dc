"""A callback follows a run and may stop it, as Ctrl-C would: `resume` then ends with the same bytes."""

import pytest
from golden import content
from searches import SHARED, TRAINING

import fixfirst as ff


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

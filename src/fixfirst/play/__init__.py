"""A policy meets a world: rollouts, evaluations with their intervals, single episodes to look at, simple defenders."""

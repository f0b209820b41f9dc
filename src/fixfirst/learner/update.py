"""One update of a training, as logs and watchers want it."""

from dataclasses import dataclass

import numpy as np

from fixfirst.orders.judging import Counts
from fixfirst.runs.rows import EpisodeRow, UpdateRow


@dataclass(frozen=True)
class Update:
    """What one update did: its row of the training log (rewards are means over its episodes), and its episodes, all [B]."""

    row: UpdateRow
    env_reward: np.ndarray
    alignment: np.ndarray
    counts: Counts | None  # None without a workflow

    def episode_rows(self) -> list[EpisodeRow]:
        """Its episodes as rows of the episode log."""
        row, n = self.row, len(self.env_reward)
        counts = self.counts if self.counts is not None else Counts(*np.zeros((len(Counts._fields), n), int))
        shares = [
            round(c / j, 6) if j else None for c, j in zip(counts.compliant.tolist(), counts.judged.tolist(), strict=True)
        ]
        return [
            EpisodeRow(
                trial=row.trial,
                workflow=row.workflow,
                update=row.update,
                episode=row.episodes - n + 1 + i,
                env_reward=round(env, 1),
                alignment=bonus,
                total_reward=env + bonus,
                compliance=shares[i],
                repairs=int(counts.repairs[i]),
            )
            for i, (env, bonus) in enumerate(zip(self.env_reward.tolist(), self.alignment.tolist(), strict=True))
        ]

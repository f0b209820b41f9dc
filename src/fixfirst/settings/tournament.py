"""What a training goes through: one start, or a tournament of starts and of openings (`learner/stages.py`)."""

from pydantic import Field, model_validator

from fixfirst.base import arguments, errors

NONE, FIND = "none", "find"  # instead of an opening: there is none, or it is searched for


class TournamentConfig(arguments.Settings):
    """How many begin, how many go on, and how an opening is found; by default one start that is trained to the end."""

    entrants: int = Field(1, ge=1, description="Short trainings from scratch, of which the best go on.")
    start_episodes: int = Field(0, ge=0, description="How many episodes each of several --entrants has.")
    opening: str = Field(
        "none",
        description="First choices of every episode: none, find (decoys that are shown to help), or names such as "
        '"Decoy User2, Decoy User2". Played everywhere, and kept in the policy file.',
    )
    survivors: int = Field(
        1, ge=1, description="How many of the best --entrants go on; the best of what they become is kept."
    )
    seek_episodes: int = Field(
        50_000,
        ge=1,
        description="With --opening find: episodes of a survivor that begin with decoys, ever fewer of them.",
    )
    halving_rounds: int = Field(6, ge=1, description="How often the worse half of the openings is dropped; 6 leave three.")
    finalists: int = Field(3, ge=1, description="How many openings are then trained separately, beside none.")
    final_episodes: int = Field(10_000, ge=1, description="Episodes of each of --finalists.")
    finalists_kept: int = Field(1, ge=1, description="How many of --finalists are trained to the end; the best is kept.")
    opening_episodes: int = Field(0, ge=0, description="Last episodes of each of --finalists-kept.")
    opening_rate: float = Field(0.0015, gt=0, description="Learning rate at the start of --opening-episodes.")

    @model_validator(mode="after")
    def _makes_sense(self) -> "TournamentConfig":
        if self.entrants > 1 and not self.start_episodes:
            raise errors.ConfigError(f"--entrants {self.entrants} needs --start-episodes: how many each of them has")
        if self.finds_opening and not self.opening_episodes:
            raise errors.ConfigError("--opening find needs --opening-episodes to train on from what was found")
        if self.survivors > self.entrants:
            raise errors.ConfigError(f"--survivors {self.survivors} needs as many --entrants, got {self.entrants}")
        if self.survivors > 1 and not self.finds_opening:
            raise errors.ConfigError(
                f"--survivors {self.survivors} are compared by the openings they find: use --opening find"
            )
        if self.finalists_kept > self.finalists + 1:
            raise errors.ConfigError(
                f"--finalists-kept {self.finalists_kept} needs as many --finalists, got {self.finalists}"
            )
        return self

    @property
    def finds_opening(self) -> bool:
        """Is an opening searched for?"""
        return self.opening == FIND

    @property
    def seeking_episodes(self) -> int:
        """Episodes in which one survivor looks for an opening."""
        return self.seek_episodes if self.finds_opening else 0

    @property
    def finishing(self) -> int:
        """How many are trained to the end."""
        return self.finalists_kept if self.finds_opening else 1

    @property
    def finishing_episodes(self) -> int:
        """Episodes with the opening, at the end, of all together."""
        return 0 if self.opening == NONE else self.finishing * self.opening_episodes

    @property
    def extra_episodes(self) -> int:
        """Episodes of all that is not a survivor's own training without an opening."""
        dropped = (self.entrants - self.survivors) * self.start_episodes
        openings = self.survivors * self.seek_episodes + (self.finalists + 1) * self.final_episodes
        return dropped + (openings if self.finds_opening else 0) + self.finishing_episodes

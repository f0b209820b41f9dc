"""The run directory: what stands in it, how it is written and locked, and what is read back from it."""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.runs.across_seeds import (
        CONFIDENCE,
        Comparison,
        MeanInterval,
        OrderAcrossSeeds,
        SeedResult,
        compare,
        mean_interval,
    )
    from fixfirst.runs.answers import Answer, OrderAnswer, SwapAnswer, read_answer
    from fixfirst.runs.config_reading import ASSUMED_TEST_EPISODES, deciding_settings, named_code, scheme_of, setting
    from fixfirst.runs.events import TensorBoard
    from fixfirst.runs.files import (
        RUN_HASH,
        SEAL,
        begun_with,
        check_seal,
        check_whose,
        read_sealed,
        sealed,
        sha256,
        versions,
        write_atomically,
        write_json,
    )
    from fixfirst.runs.layout import (
        ANSWER,
        BEST,
        CHECKPOINT_PREFIX,
        CHOICES,
        CONFIG,
        EPISODE_LOG,
        LEDGER,
        MANIFEST,
        POLICY_JSON,
        POLICY_TENSORS,
        REPLAY,
        REPORT,
        RESULT,
        ROUNDS,
        RUNS,
        RUNTIME,
        STUDY,
        TENSORBOARD,
        TRAINING_LOG,
        WARMUP,
        WARMUP_KEY,
        Kind,
        replay_file,
        replicate_folder,
        trial_folder,
        unused_folder,
    )
    from fixfirst.runs.ledger import Standings, read_trials, standings
    from fixfirst.runs.listing import UNREADABLE, RunSummary, find_runs, summarise_runs
    from fixfirst.runs.lock import RUNNING, Session, duration, last_outcome, locked, status
    from fixfirst.runs.logs import CsvLog, keep_rows, read_rows
    from fixfirst.runs.manifest import (
        beginning,
        changed_since,
        check_config,
        check_own,
        create_run,
        kind_of,
        read_config,
        read_manifest,
        read_toml,
        write_manifest,
    )
    from fixfirst.runs.rows import (
        ChoiceRow,
        EpisodeRow,
        Outcome,
        Row,
        SessionRow,
        Status,
        Trial,
        UpdateRow,
        ValueRow,
        number,
    )
else:
    __getattr__, __dir__ = offers(__name__)

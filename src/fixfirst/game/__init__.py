"""CAGE Challenge 2 itself: the network, its rules as a compiled simulator, and one turn in words and as a picture."""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.game.action_sets import ActionSet
    from fixfirst.game.actions import ACTIONS, NUM_ACTIONS, REPAIR_VERBS, SLEEP, action_id
    from fixfirst.game.arguments import MOST, a_path, numbers, one_of, seed_number, texts, whole, yes_or_no
    from fixfirst.game.chance import (
        P_DETECTED,
        P_TOP_EXPLOIT,
        counter_uniform,
        environment_key,
        first_user,
        pick_address,
    )
    from fixfirst.game.compiling import announce_compilation, cache_folder, called, compiled, inlined, is_compiled
    from fixfirst.game.conformance import (
        HOST_LETTERS,
        OT_NAMES,
        PID_REUSED,
        RED_AGENTS,
        RED_VERBS,
        SUBNET_LETTERS,
        ReplayReport,
        replay_file,
    )
    from fixfirst.game.defenders import DEFENDERS, RESTORE, Defender, react_remove, react_restore, sleep
    from fixfirst.game.drawing import HEIGHT, LINKS, PLACES, ROW_HEIGHT, SUBNET_TOP, WIDTH, outcome, picture, tenths
    from fixfirst.game.elementary import exp, log
    from fixfirst.game.gym_env import Cage2, Remember, VecCage2, VecWorld, autoreset_name, render_mode_name
    from fixfirst.game.job_process import Job, JobProcess, carried, raise_carried
    from fixfirst.game.kernel import NEXT_STEP, SAME_STEP, held, next_episode, step_one
    from fixfirst.game.matrices import meanings_of, memory_matrices
    from fixfirst.game.memory import MEMORY_DTYPE
    from fixfirst.game.memory_schemes import MemoryScheme
    from fixfirst.game.moment import Cost, Moment, moment_of
    from fixfirst.game.network import (
        ENTERPRISE,
        EXPLOIT_NAMES,
        EXPLOITS,
        FOOTHOLD,
        HOST_ID,
        HOST_NAMES,
        HOSTS,
        NUM_HOSTS,
        OPERATIONAL,
        OT_SERVER,
        RESTORE_COST,
        SUBNETS,
        UNIT_TYPES,
        USER,
        VARIANTS,
        Variant,
        VariantName,
    )
    from fixfirst.game.own_agents import red_agent
    from fixfirst.game.processes import CORES_VARIABLE, available_cores, follow_parent
    from fixfirst.game.red_agents import red_intends
    from fixfirst.game.registration import register_environments
    from fixfirst.game.remembering import (
        Memories,
        forget_one,
        masked,
        remember_one,
        suspect_one,
        suspects,
        unclean,
        world_action,
        write_bits,
        write_group,
    )
    from fixfirst.game.settings import (
        Backend,
        Game,
        Settings,
        first_problem,
        red_agent_name,
        red_agent_names,
        red_odds,
    )
    from fixfirst.game.state import (
        BITS_PER_HOST,
        NO_TARGET,
        OBSERVATION_BITS,
        STATE_DTYPE,
        TURN_DTYPE,
        OTService,
        RedAgent,
        RedVerb,
        Success,
    )
    from fixfirst.game.tables import ports_mask
    from fixfirst.game.world import (
        ARRAYS,
        BaseWorld,
        GameSettings,
        World,
        WorldSettings,
        check_seeds,
        compile_kernel,
        pack,
    )
else:
    __getattr__, __dir__ = offers(__name__)

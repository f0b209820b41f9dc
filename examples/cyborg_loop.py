"""An exported policy in CybORG's own loop: `python examples/cyborg_loop.py cage-challenge-2 policy.onnx`.

Make the file with `fixfirst export RUN --out policy.onnx`; this program needs CybORG, NumPy and onnxruntime only.
"""

import sys

import numpy as np
import onnxruntime

checkout, file = sys.argv[1:]
sys.path.insert(0, f"{checkout}/CybORG")  # unless it is installed
from CybORG import CybORG  # noqa: E402
from CybORG.Agents import B_lineAgent  # noqa: E402
from CybORG.Agents.Wrappers import ChallengeWrapper  # noqa: E402

scenario = f"{checkout}/CybORG/CybORG/Shared/Scenarios/Scenario2.yaml"
env = ChallengeWrapper(env=CybORG(scenario, "sim", agents={"Red": B_lineAgent}), agent_name="Blue")

session = onnxruntime.InferenceSession(file)
total, obs, greedy = 0.0, env.reset(), np.full((1, 1), -1, np.float32)
state = np.zeros((1, session.get_inputs()[1].shape[1]), np.float32)
for _ in range(100):
    action, state, _ = session.run(None, {"observation": np.float32([obs]), "state": state, "draw": greedy})
    obs, reward, done, info = env.step(int(action[0, 0]))
    total += reward
print(total)

"""One seed at the door, named streams inside: training, gating and testing never share a random number."""

import hashlib


def stream_seed(seed: int, *names: str | int) -> int:
    """Return the seed of the stream with this name, 0..2**63-1, e.g. stream_seed(0, "trial", 3, "world")."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

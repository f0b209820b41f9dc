"""Fixtures that several test modules share."""

import os

for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")  # before anything starts a pool: on a busy machine spinning threads are 10x slower

from browser import chromium, visit  # noqa: E402
from ray_cluster import cluster, ray_folder, two_nodes  # noqa: E402

__all__ = ["chromium", "cluster", "ray_folder", "two_nodes", "visit"]

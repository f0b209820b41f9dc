"""Fixtures that several test modules share."""

from browser import chromium, visit
from ray_cluster import cluster, ray_folder, two_nodes

__all__ = ["chromium", "cluster", "ray_folder", "two_nodes", "visit"]

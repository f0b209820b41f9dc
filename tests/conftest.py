"""Fixtures that several test modules share."""

from browser import chromium, visit

__all__ = ["chromium", "visit"]

"""The original game, CybORG, behind the arrays of our own: found, identified, played in worker processes, recorded."""

"""How long tests wait for what must happen: so long that only a hang takes longer, on any machine and under any load."""

PATIENCE_S = 600.0

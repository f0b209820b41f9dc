"""Where trials run: in this process, in worker processes, on a Ray cluster. One contract for all three."""

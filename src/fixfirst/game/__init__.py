"""CAGE Challenge 2 itself: the network, its rules as a compiled simulator, and one turn in words and as a picture."""

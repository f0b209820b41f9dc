"""Orders: which unit types to fix first, whether a repair keeps to it, what a policy must show, and how orders rank."""

"""What may stand in an opening beside the numbers of choices."""

RANDOM_MACRO = -1  # any of the macros, drawn anew in every episode

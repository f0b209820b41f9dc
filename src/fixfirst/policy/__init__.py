"""What a player is: what it remembers, may choose and must keep; its network, its table of answers, its files."""

"""The searcher: which orders to train next, running them anywhere, until the episode budget is used."""

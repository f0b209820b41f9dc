"""Telling: on the terminal while something runs, and afterwards as tables, pages, Markdown and replays.

Works from files and plain values alone; importing it brings neither PyTorch nor matplotlib.
"""

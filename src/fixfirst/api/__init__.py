"""The verbs: what a person asks for, from Python (`import fixfirst as ff`) or from the command line, a function each.

Here the rooms meet: a search ends with a report, an evaluation finds its policy in a run. The commands are thin shells over
these functions.
"""

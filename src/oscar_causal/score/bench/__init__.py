"""`oscar bench`: the paper's tables and figures, measured again: make or take a fleet, train, discover, score.

Each module beside this one holds one table or figure as a `Bench`: its rows, how a row becomes a line, a plot.
"""

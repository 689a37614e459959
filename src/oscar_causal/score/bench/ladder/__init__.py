"""`oscar bench ladder`: every method on the same worlds, sequences and pairs.

`truth` reads the reasons and scores by one denominator, `methods` holds the rows, `measuring` runs them, `page` tells.
"""

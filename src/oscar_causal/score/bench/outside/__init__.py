"""`oscar bench outside`: sets whose data and truth come from elsewhere, through one interface.

Read in this order: `interface` (a set, its truth, a method's answer), `telecom`, `fines`, `bpic`, `causrca`, `trees`
and `fault_trees` (one set each: raw files to sequences, truth, folds, own figures), `scoring` (ours and theirs),
`rivals` (methods without a network), `table` (rows, pages, plots).
"""

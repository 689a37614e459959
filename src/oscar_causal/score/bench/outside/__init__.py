"""Sets whose data and truth come from elsewhere.

Read in this order: `outside_set` (what a set is), `telecom`, `fines`, `bpic`, `causrca`, `trees` and `fault_trees` (one
set each: raw files to sequences, truth, folds, own figures), `own_figures` (edges, rankings), `ground` (a set as the
ladder sees it).
"""

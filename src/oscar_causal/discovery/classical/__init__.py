"""Classical causal discovery on sparse counts: the rivals of one-shot discovery, in a form that finishes.

`features` and `occurrences` make columns of sequences, a table counts (`sparse`, `categorical`), `ci_tests` and `exact`
turn counts into tests, a `CiTester` hands them to the algorithms (`iamb`, `cmb`, `mb_by_mb`, `pcd_by_pcd`, `mi_mcf`),
`learning` takes all labels of a dataset through one of them, `reading` reads the boundaries in each sequence, and
`folder` writes the results.
"""

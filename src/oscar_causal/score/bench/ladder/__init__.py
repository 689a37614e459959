"""`oscar bench ladder`, `oscar bench outside`: every method on the same sequences and pairs, scored in one way.

Read in this order: `interface` (ground, part, answer, method), `worlds` (and `outside.ground`), `scoring`, the methods
(`tuning`; `counting`, `boosted`, `trained`, `fleet_rows`; `rows` lists them), `measuring` (the engine), `page`,
`tables` (the two commands).
"""

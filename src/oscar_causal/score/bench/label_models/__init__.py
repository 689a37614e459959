"""`oscar bench labels`: how much of what can be known about a label does each label model know?

Read in this order: `material` (what a label model may see), `features` (sequences as tables), `plain_transformer`,
`models` (the rows), `scoring` (log loss, skill, average precision, F1), `measuring` (runs rows), `page`.
"""

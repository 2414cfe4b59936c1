"""Commands. `campaign` runs many seeds of the world; `powercuts`, `claims` and `owners` run one part of the program
under faults of its own; `kills` and `soak` run the real process; `teeth` plants bugs and expects each to be caught;
`live` shows a world while it runs (`scene` is what is shown, `view` draws it). Each ends with a line of JSON and
returns 1 if a promise was broken.
"""

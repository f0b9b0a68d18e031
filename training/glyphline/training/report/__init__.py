"""The report of an evaluation: figures with their uncertainty, and a page to look at. Needs no torch."""

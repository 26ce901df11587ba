"""The documents' tables as data, and the comparison of a run with them."""

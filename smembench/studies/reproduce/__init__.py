"""The documents' tables as data, and a run compared with them."""

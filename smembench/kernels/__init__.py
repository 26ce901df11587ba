"""How: one file a variant, under ``<problem>/<kind of device>/``; see ``registry.py`` for what a file declares."""

"""The version of smembench."""

VERSION = "0.1.0"

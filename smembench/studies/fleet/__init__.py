"""A fleet: the same config on many devices of one or many hosts, and which device is slow."""

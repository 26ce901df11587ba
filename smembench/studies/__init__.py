"""What commands compute: measure, compare, explain, tune and so on, a file or folder per command. Prints nothing."""

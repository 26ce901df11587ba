"""What is made of runs, a file or folder per command. Prints nothing."""

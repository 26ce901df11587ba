"""The commit that made cases slower: the search, the worktrees that it builds, and the runs that it judges."""

"""Random requests of one warp, counted on a GPU, against the rules by which ``explain`` predicts."""

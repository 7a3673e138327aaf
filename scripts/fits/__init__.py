"""FIT: the programs that fit the simulator to measured runs, and the tables that they need."""

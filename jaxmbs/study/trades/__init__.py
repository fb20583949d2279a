"""Trade studies: one study for each of several designs, with the same draws in all of them, and their differences."""

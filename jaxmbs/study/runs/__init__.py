"""Running a study: from an estimate of what it needs to the last sample, here or on other machines."""

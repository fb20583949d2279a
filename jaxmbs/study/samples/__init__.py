"""The computation of samples: whole blocks by index, and single ones with their history."""

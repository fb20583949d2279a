"""The computation of samples: whole blocks by index, and single samples with their history."""

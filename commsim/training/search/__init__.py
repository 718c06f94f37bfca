"""Which plan is the best? Every plan that divides, as arrays: what many plans share is worked out once."""

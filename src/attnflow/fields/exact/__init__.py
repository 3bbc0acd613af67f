"""Fields whose flow is known exactly: what they have in common (`base`), and the elements that schedules have."""

"""What things cost, measured on the real engine. Never decides whether something is right or wrong by a clock."""

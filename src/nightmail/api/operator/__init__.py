"""What only the operator's token may ask."""

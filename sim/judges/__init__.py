"""What is watched, and the verdict."""

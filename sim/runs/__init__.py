"""Campaigns: many worlds, one command each."""

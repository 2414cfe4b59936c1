"""Commands about an account, its devices and its profile on this machine."""

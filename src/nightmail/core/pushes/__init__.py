"""How a sleeping device is woken: its token, when it is looked at, what becomes of a push."""

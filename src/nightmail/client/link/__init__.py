"""The connection to the server: finding it, opening it, keeping it alive, framing what goes over it.

liveness.py         Hello, Welcome, heartbeat: a connection as the machine sees it
bounds.py           which numbers a server may say
framing.py          items into frames
driver.py           drives a machine on asyncio: turns, time, reconnecting
connection.py       one WebSocket
route.py            where to connect next, and when
restart_budget.py   how often a frame may break the machine
http.py             requests over HTTP
clock.py            the one clock
"""

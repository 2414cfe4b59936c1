"""What Redis is asked to do at once, and the names of its keys.

Each script is given a deadline by Redis's own clock: what a Redis that was paused finds in its sockets afterwards was
given up by its sender long ago, and must not happen any more.
"""

from __future__ import annotations

from nightmail.model.ids import DEVICE_BITS

IN_TIME = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if tonumber(ARGV[1]) > 0 and now > tonumber(ARGV[1]) then return redis.error_reply('LATE given up') end
"""

TAKE = (
    IN_TIME
    + """
local since = tonumber(ARGV[3])
local present = redis.call('GET', KEYS[1])
if present then
  local connection, at = string.match(present, '^(%d+) (%d+) ')
  if connection ~= ARGV[2] and tonumber(at) >= since then
    if ARGV[6] == '0' then return 0 end
    since = tonumber(at) + 1
  end
end
redis.call('SET', KEYS[1], string.format('%s %.0f %s', ARGV[2], since, ARGV[4]), 'PX', ARGV[5])
return since
"""
)
"""Key: seat. Connection, since, node, lifetime, whether it wins. Returns since; 0: somebody sits there since later."""

LEAVE = (
    IN_TIME
    + """
local present = redis.call('GET', KEYS[1])
if not present or string.match(present, '^%d+') ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
return 1
"""
)
"""Key: seat. Connection."""

SIGN = (
    IN_TIME
    + """
redis.call('SET', KEYS[1], ARGV[3], 'NX')
local epoch = redis.call('GET', KEYS[1])
if ARGV[4] == '1' and epoch == ARGV[2] then redis.call('SET', KEYS[2], epoch, 'PX', ARGV[5]) end
return {epoch, now}
"""
)
"""Keys: epoch, node. The epoch that is known, one to begin with, whether to sign, for how long. Returns (epoch, now)"""

CLAIM = (
    IN_TIME
    + """
if redis.call('GET', KEYS[1]) ~= ARGV[2] then return redis.error_reply('EPOCH another one') end
if redis.call('EXISTS', KEYS[2]) == 1 then return {-1} end
if not redis.call('SET', KEYS[3], '1', 'NX', 'PX', ARGV[3]) then return {math.max(1, redis.call('PTTL', KEYS[3]))} end
local found = {0}
for i = 4, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then found[#found + 1] = i - 4 end
end
return found
"""
)
"""Keys: epoch, seat, wake, nodes. The epoch that is known, how long a claim lasts. Returns what to wait, and the places
of the nodes that have not signed."""


class RedisKeys:
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.epoch = f"{prefix}epoch"

    def seat(self, device: int) -> str:
        return f"{self._prefix}conn:{_device(device)}"

    def wake(self, device: int) -> str:
        return f"{self._prefix}wake:{_device(device)}"

    def node(self, number: int) -> str:
        return f"{self._prefix}node:{number}"


def _device(device: int) -> str:
    return f"{device >> DEVICE_BITS:x}:{device & (1 << DEVICE_BITS) - 1}"

"""Networks take turns."""

from __future__ import annotations

from nightmail.gateway.fair_queue import FairQueue


def test_a_network_that_brings_many_waits_behind_itself_only() -> None:
    queue = FairQueue[str]()
    for number in range(1_000):
        queue.add(f"hostile {number}", "192.0.2.1")
    for name in ("ada", "ben"):
        queue.add(name, "192.0.2.2")
    queue.add("carol", "")
    assert [queue.take() for _ in range(6)] == ["hostile 0", "ada", "carol", "hostile 1", "ben", "hostile 2"]
    assert len(queue) == 997


def test_of_one_network_the_oldest_comes_first_and_an_empty_one_is_forgotten() -> None:
    queue = FairQueue[int]()
    taken = list[int]()
    for number in range(4):
        queue.add(number, f"2001:db8:{number}::/64")
    taken += [queue.take(), queue.take()]
    queue.add(4, "2001:db8:0::/64")
    queue.add(5, "2001:db8:0::/64")
    while queue:
        taken.append(queue.take())
    assert taken == [0, 1, 2, 3, 4, 5]

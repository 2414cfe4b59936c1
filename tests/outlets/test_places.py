from __future__ import annotations

from nightmail.outlets.places import PlaceLimits, Places

LIMITS = PlaceLimits(calls=5, host_calls=2, unproven_calls=2, unproven_wait_ms=100, hosts=3)


def begun(places: Places[str]) -> list[str]:
    return [call for _, _, call in places.take()]


def prove(places: Places[str], *origins: str) -> None:
    for origin in origins:
        places.add(origin, "first", 0)
        assert begun(places) == ["first"]
        places.leave(origin, was_proven=False, answered=True)


def test_a_receiver_that_was_never_called_has_one_place_until_it_answers() -> None:
    places: Places[str] = Places(LIMITS)
    for call in ("a", "b", "c", "d"):
        places.add("x", call, 0)
    assert begun(places) == ["a"]
    places.leave("x", was_proven=False, answered=True)
    assert begun(places) == ["b", "c"]
    places.leave("x", was_proven=True, answered=True)
    assert begun(places) == ["d"]


def test_receivers_that_do_not_answer_leave_places_to_those_that_do() -> None:
    places: Places[str] = Places(LIMITS)
    prove(places, "good")
    for origin in ("hangs1", "hangs2", "hangs3"):
        places.add(origin, origin, 0)
    assert begun(places) == ["hangs1", "hangs2"]
    places.add("good", "g1", 0)
    places.add("good", "g2", 0)
    assert begun(places) == ["g1", "g2"]


def test_a_receiver_that_stops_answering_goes_back_to_one_place() -> None:
    places: Places[str] = Places(LIMITS)
    prove(places, "x")
    for call in ("a", "b", "c", "d"):
        places.add("x", call, 0)
    assert begun(places) == ["a", "b"]
    places.leave("x", was_proven=True, answered=False)
    assert begun(places) == []
    places.leave("x", was_proven=True, answered=False)
    assert begun(places) == ["c"]


def test_receivers_take_turns() -> None:
    places: Places[str] = Places(LIMITS)
    prove(places, "x", "y")
    for n in range(3):
        places.add("x", f"x{n}", 0)
    places.add("y", "y0", 0)
    assert begun(places) == ["x0", "y0", "x1"]
    assert (places.busy, places.waiting) == (3, 1)


def test_a_call_waits_long_for_a_receiver_that_answers_and_not_for_one_that_does_not() -> None:
    places: Places[str] = Places(LIMITS)
    prove(places, "good")
    for call in ("a", "b", "c"):
        places.add("hangs", call, 0)
        places.add("good", call.upper(), 0)
    places.add("hangs", "d", 50)
    assert sorted(begun(places)) == ["A", "B", "a"]
    assert list(places.overdue(99)) == []
    assert list(places.overdue(100)) == ["b", "c"]
    assert places.waiting == 2
    places.leave("hangs", was_proven=False, answered=False)
    assert begun(places) == ["d"]


def test_receivers_that_have_nothing_to_do_are_forgotten() -> None:
    places: Places[str] = Places(LIMITS)
    for n in range(10):
        places.add(f"x{n}", "call", 0)
        assert begun(places) == ["call"]
        places.leave(f"x{n}", was_proven=False, answered=n % 2 == 0)
    places.add("waits", "call", 0)
    assert list(places.overdue(1_000)) == ["call"]
    assert places.origins == 3

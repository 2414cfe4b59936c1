"""What accounts and addresses may do over all their connections."""

from __future__ import annotations

from nightmail.gateway.budgets import LOW_MS, Budgets
from nightmail.gateway.counters import Counters
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import Claimed, KeysAsked
from nightmail.model.refusals import RateLimited
from nightmail.wire.items import Answered
from tests.gateway.rig import ADA, PHONE, TABLET, a_message, a_town

HOUSE, OTHER = "192.0.2.1", "192.0.2.2"


def a_budget(limits: GatewayLimits, started: int = -GatewayLimits().young_ms) -> tuple[Budgets, Counters]:
    """Of a server that has run since `started`: by default so long that it knows every young account."""
    counters = Counters()
    return Budgets(limits, counters, started), counters


def claims(budgets: Budgets, devices: list[int], address: str = HOUSE, target: int = TABLET, now: int = 0) -> int:
    """How many of these devices may claim a key."""
    return [budgets.wait_ms(each, address, Claimed(target, 1), now) for each in devices].count(0)


def test_the_send_rate_is_the_accounts_and_a_reconnect_refills_nothing() -> None:
    town = a_town(GatewayLimits(sends_per_s=1, sends_burst=2))
    for n, limited in ((1, False), (2, False), (3, True)):
        phone = town.connect(PHONE)
        phone.ask(a_message(n))
        said = [item.said for item in phone.take() if isinstance(item, Answered)]
        assert [isinstance(each, RateLimited) for each in said] == [limited]


def test_all_devices_of_an_account_share_its_rate() -> None:
    budgets, _ = a_budget(GatewayLimits())
    phone, tablet = device_id(ADA, 1), device_id(ADA, 2)
    shared = [of(phone, 0) is of(tablet, 0) for of in (budgets.sends, budgets.received, budgets.items)]
    assert shared == [True, True, False]


def test_many_accounts_of_one_address_do_not_empty_a_devices_keys() -> None:
    budgets, counters = a_budget(GatewayLimits(address_device_claims_per_minute=20))
    crowd = [device_id(account_id(f"fresh {n}"), 1) for n in range(120)]
    assert (claims(budgets, crowd), counters.claims_limited) == (20, 100)
    assert claims(budgets, crowd[:5], address=OTHER) == 5
    assert claims(budgets, crowd[:5], target=PHONE) == 5


def test_ipv6_addresses_of_one_organization_count_as_one() -> None:
    budgets, _ = a_budget(GatewayLimits(address_device_claims_per_minute=3))
    taken = [claims(budgets, [PHONE], address=f"2001:db8:1:{n:x}::1") for n in range(6)]
    assert sum(taken) == 3


def test_while_few_keys_are_left_they_are_claimed_at_a_tenth_of_the_rate() -> None:
    budgets, _ = a_budget(GatewayLimits(address_device_claims_per_minute=20))
    budgets.low(TABLET, 0)
    crowd = [device_id(account_id(f"fresh {n}"), 1) for n in range(10)]
    assert claims(budgets, crowd) == 2
    assert claims(budgets, crowd, now=LOW_MS) == 10


def test_an_account_that_registered_recently_claims_less() -> None:
    limits = GatewayLimits(claims_per_minute=5, young_claims_per_minute=2, young_ms=1_000_000)
    budgets, _ = a_budget(limits)
    budgets.registered(ADA, 0)
    assert claims(budgets, [PHONE] * 9) == 2
    assert claims(budgets, [TABLET] * 9, target=PHONE) == 5
    assert claims(budgets, [PHONE] * 9, now=1_000_000) == 5


def test_after_a_start_every_account_claims_as_if_it_had_registered_then() -> None:
    limits = GatewayLimits(claims_per_minute=5, young_claims_per_minute=2, young_ms=1_000_000)
    budgets, _ = a_budget(limits, started=0)
    assert claims(budgets, [PHONE] * 9) == 2
    assert claims(budgets, [PHONE] * 9, now=999_999) == 2
    assert claims(budgets, [PHONE] * 9, now=1_000_000) == 5


def test_one_address_claims_so_many_in_all() -> None:
    budgets, _ = a_budget(GatewayLimits(address_claims_per_minute=7))
    assert sum(claims(budgets, [PHONE], target=device_id(n, 1)) for n in range(1, 20)) == 7


def test_without_an_address_only_the_account_counts() -> None:
    budgets, _ = a_budget(GatewayLimits(claims_per_minute=4, address_device_claims_per_minute=1))
    assert claims(budgets, [PHONE] * 9, address="") == 4


def test_an_account_above_its_bytes_is_not_read_from_until_it_may_again() -> None:
    town = a_town(GatewayLimits(bytes_per_s=10_000, bytes_burst=1_000))
    ada = town.connect(PHONE)
    ada.session.charge_bytes(1_000, town.pace)
    held = [ada.link.held]
    ada.session.charge_bytes(1_000, town.pace)
    held.append(ada.link.held)
    town.wait(60)
    held.append(ada.link.held)
    town.wait(80)
    assert [*held, ada.link.held] == [False, True, True, False]


def test_who_only_asks_for_keys_has_the_budget_of_fellow_members() -> None:
    limits = GatewayLimits(fellow_claims_per_minute=3, address_fellow_claims_per_minute=5)
    budgets, counters = a_budget(limits)
    phone, other = device_id(account_id("cleo"), 1), device_id(account_id("dan"), 1)
    asked = [budgets.wait_ms(device, HOUSE, KeysAsked(TABLET), 0) for device in [phone] * 4 + [other] * 3]
    assert [wait == 0 for wait in asked] == [True, True, True, False, True, False, False]
    assert counters.claims_limited == 3
    assert claims(budgets, [phone]) == 1

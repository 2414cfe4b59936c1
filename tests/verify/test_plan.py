"""What happens when, from one seed."""

from __future__ import annotations

from nightmail.verify.plan import Break, Fault, Kill, Plan, Write


def test_the_same_seed_is_the_same_plan_and_another_is_another() -> None:
    assert Plan(seed=7).steps() == Plan(seed=7).steps()
    assert Plan(seed=7).steps() != Plan(seed=8).steps()


def test_a_plan_has_every_fault_and_stays_within_its_time() -> None:
    plan = Plan(seed=1, seconds=120)
    steps = plan.steps()
    assert [step.at_ms for step in steps] == sorted(step.at_ms for step in steps)
    assert all(0 <= step.at_ms < 120_000 for step in steps)
    assert {step.fault for step in steps if isinstance(step, Break)} == set(Fault)
    assert any(isinstance(step, Kill) for step in steps)
    assert all(step.to != plan.owner(step.by) for step in steps if isinstance(step, Write))


def test_even_a_short_plan_kills_once_and_a_server_of_somebody_elses_never() -> None:
    for seed in range(20):
        assert any(isinstance(step, Kill) for step in Plan(seed=seed, seconds=2).steps())
        assert not any(isinstance(step, Kill) for step in Plan(seed=seed, kills=False).steps())


def test_members_of_the_group_write_to_it_and_nobody_else_does() -> None:
    plan = Plan(seed=3, seconds=60)
    authors = {plan.owner(step.by) for step in plan.steps() if isinstance(step, Write) and step.to == plan.group}
    assert authors == set(plan.members) == {0, 1, 2}
    assert list(Plan(people=2).members) == [0, 1]

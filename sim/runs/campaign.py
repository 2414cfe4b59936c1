"""Many seeds, one verdict.

    python -m sim.runs.campaign --mode node --seeds 500
    python -m sim.runs.campaign --mode cluster --seed 17 --seeds 1

A failing seed prints itself, how to run it again, and the shortest story found that ends the
same way. The last line on standard output is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from sim.world.plan import FAULTS, HABITS, Plan, run, shrink
from sim.world.world import Broken

SECONDS = {"node": 30, "cluster": 8}
"""Of simulated time: a cluster has more going on in each."""
SHRINK_TRIES = 120

LIES = tuple(
    f"a lie was answered {said}"
    for said in ("AckAboveHead", "IdReused", "Malformed", "NotAllowed", "OutOfOrder", "StaleDevices")
)
MUST_HAPPEN = {
    "node": {
        25: (
            "answered again", "app hung", "blocked", "clock jumped forward", "clock jumped backward", "displaced",
            "duplicate send", "half-open connection", "mailbox full for all", "out_of_order", "power cut",
            "power cut in recovery", "power cut just after a durable action", "replay compared",
            "replay from an older checkpoint", "resent after a reconnect", "re-sealed", "stale device list",
            "stale list repaired", "two connections of one device", "void came too late", "voided",
            "waiting for network", "write failed", "Unavailable",
        ),
        100: (
            "failed: mailbox_full", "failed: expired", "failed: device_removed", "failed: undecryptable",
            "failed: stale_devices", "message disappeared", "device's clock set back", "timer set",
            "re-sealed with what was left", "mailbox full by bytes", "gap served", "redelivered",
            "redelivered and dropped", "client crashed before its commit", "client crashed between commit and ack",
            "client's commit failed", "suspected", "suspect then restored", "repeat at t1", "repeat at t2",
            "credit window closed", "drain paced", "admission refused", "refused while stopping",
            "goodbye draining", "hello timeout", "rate limited", "too_old", "server given up as silent",
            "a lost device was turned away", "a liar's entry", *LIES, "started over", "no more PINs",
            "failures shared an interval", "expiry met an ack", "killed", "stopped", "sync failed",
            "disk full for log-", "disk full for rows.", "DiskFull", "Overloaded", "failed sync kept the data",
            "failed sync lost data", "slow disk", "clock leapt a day", "clock went wrong", "wrong clock believed",
            "booted with a wrong clock", "time set back", "judged how long something waits", "share full for all",
            "a block met an ack",
        ),
    },
    "cluster": {
        25: (
            "account asked of an owner that lags",
            "answer lost", "answer repeated", "answer to a node that is gone", "append lost", "append unknown",
            "append durable without its place",
            "blocked", "displaced", "forward repeated", "fold raised", "fold raised by all", "gateway killed",
            "news lost", "out_of_order", "overtaken", "owner behind client", "replay compared",
            "replay from an older checkpoint", "resent after a reconnect", "stale device list",
            "stale list repaired", "stopped", "suspect then restored", "taken over",
            "two connections of one device", "voided", "write came late", "write repeated",
            "log down", "checkpoint saved forwards to a log that is down", "saved forwards found",
            "write timed out yet applied", "zombie folded", "zombie forwarded", "zombie saved", "zombie served",
        ),
        100: (
            "answered again", "failed: expired", "failed: device_removed", "gap served", "redelivered and dropped",
            "repeat at t1", "repeat at t2", "credit window closed", "goodbye draining", "rate limited",
            "client crashed between commit and ack", *LIES, "started over", "no more PINs", "out-of-chain forward",
            "old fold stopped", "fell behind the log", "upgraded",
            "append lost its first and kept the rest", "failed: mailbox_full", "pointer seen before it was answered",
        ),
        200: ("expiry met an ack",),
    },
}  # fmt: skip
"""What must have happened at least once in a campaign of so many seeds or more: of what is asked for in so few as 25,
each happens in every second or third world."""


SEALED_EVERY = 4
SEALED_MUST_HAPPEN = (
    "session begun", "bundle claimed", "exhausted bundle", "keys published again", "unreadable healed", "undecryptable",
    "sessions set back", "key changed", "contact verified", "new key accepted",
    "linked by a code", "device removed", "started over", "re-sealed", "re-sealed for a successor",
    "stale list repaired", "client crashed between commit and ack", "client crashed before its commit",
)  # fmt: skip
SEALED_ON_A_NODE = ("sealed again for another key",)
"""Likewise, on a node alone: in a cluster few messages still wait when their recipient registers again."""
SEALED_ENOUGH = 100
"""Sealed worlds in which all of this must have happened."""


def is_sealed(seed: int) -> bool:
    """Whether the devices of this world seal, if nobody says otherwise."""
    return seed % SEALED_EVERY == 0


def must_happen(mode: str, worlds: int) -> list[str]:
    return [what for least, things in MUST_HAPPEN[mode].items() if worlds >= least for what in things]


def never_happened(
    mode: str, opaque: int, sometimes: Counter[str], sealed: int, sealed_times: Counter[str]
) -> list[str]:  # fmt: skip
    """What should have happened in so many worlds, and did not."""
    never = [what for what in must_happen(mode, opaque + sealed) if not sometimes[what]] if opaque else []
    if sealed >= SEALED_ENOUGH:
        expected = SEALED_MUST_HAPPEN + (SEALED_ON_A_NODE if mode == "node" else ())
        never += [f"sealed: {what}" for what in expected if not sealed_times[what]]
    return never


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("node", "cluster"), default="node")
    parser.add_argument("--seeds", type=int, default=25, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--people", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="of simulated time before healing")
    parser.add_argument(
        "--off", default="", help="habits and faults that do not occur: " + ", ".join((*FAULTS, *HABITS))
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--sealed", action="store_true", help="sealed devices in every world, not only in every fourth")
    kind.add_argument("--opaque", action="store_true", help="in none")
    parser.add_argument("--no-shrink", action="store_true")
    return parser.parse_args(arguments)


def plans(options: argparse.Namespace) -> Iterator[Plan]:
    """What was asked for, one seed after the other."""
    named: str = options.off
    off = frozenset(name for name in named.split(",") if name)
    seconds: float = options.seconds or SECONDS[options.mode]
    for seed in range(options.seed, options.seed + options.seeds):
        sealed: bool = options.sealed or (is_sealed(seed) and not options.opaque)
        yield Plan(options.mode, seed, options.people, seconds, off, sealed)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    began, said = time.monotonic(), time.monotonic()
    spent = time.process_time()
    sometimes: Counter[str] = Counter()
    sealed_times: Counter[str] = Counter()
    events = sealed_worlds = 0
    outcome: dict[str, object] = {"campaign": "sim", "mode": options.mode, "seeds": options.seeds, "seed": options.seed}
    broken_promise = ""
    for done, plan in enumerate(plans(options), 1):
        try:
            world = run(plan)
        except Broken as broken:
            broken_promise = broken.promise
            tell_failure(plan, broken, may_shrink=not options.no_shrink)
            outcome["failed_seed"] = plan.seed
            break
        sometimes += world.sometimes
        if plan.sealed:
            sealed_worlds += 1
            sealed_times += world.sometimes
        events += world.events
        if time.monotonic() - said > 1:
            said = time.monotonic()
            print(f"{done} of {options.seeds} seeds, {events:,} events", end="\r", file=sys.stderr, flush=True)
    never = never_happened(options.mode, options.seeds - sealed_worlds, sometimes, sealed_worlds, sealed_times)
    if options.off or options.people or options.seconds:
        never = []  # Of worlds that somebody has chosen nothing is expected.
    if never and not broken_promise:
        print(f"never happened in this campaign: {', '.join(never)}", file=sys.stderr)
    kinds = {"lost": "nothing lost", "doubled": "nothing twice", "reordered": "sender's order"}
    outcome |= {
        "sealed": sealed_worlds,
        "events": events,
        **{key: int(broken_promise == promise) for key, promise in kinds.items()},
    }
    outcome |= {
        "broken": broken_promise or None,
        "never": never,
        "events_per_minute": round(events / max(time.process_time() - spent, 0.001) * 60),
        "seconds": round(time.monotonic() - began, 1),
        "sometimes": dict(sorted(sometimes.items())),
    }
    print(json.dumps(outcome))
    return 1 if broken_promise or never else 0


def tell_failure(plan: Plan, broken: Broken, *, may_shrink: bool) -> None:
    """For the person who has to understand it: what broke, how to see it again, and its story."""
    print(f"\nBROKEN {broken}\nagain:  {plan.command()}", file=sys.stderr)
    if may_shrink:
        print("looking for a shorter story …", file=sys.stderr)
        smaller, shorter = shrink(plan, broken.promise, SHRINK_TRIES)
        if shorter:
            print(f"shorter: {smaller.command()}\n{shorter}", file=sys.stderr)
            broken = shorter
    print(*broken.story, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

"""Fuzz every decoder that faces a peer, guided by coverage (atheris), each in a process of its own.

python -m tests.fuzz --seconds 60
python -m tests.fuzz --seconds 60 --target websocket
python -m tests.fuzz --again crash-…  --target websocket
"""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SLOW_S = 5
"""An input that takes longer is a finding."""
BYTES_MAX = 8_192
FOUND = Path("build/fuzz")
"""Inputs that something was found with."""


def child(target: str, arguments: list[str]) -> None:
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["nightmail"]):
        targets: Any = importlib.import_module("tests.fuzz.targets")
    atheris.Setup([sys.argv[0], *arguments], targets.TARGETS[target])
    atheris.Fuzz()


def fuzz(target: str, seeds: list[bytes], seconds: int) -> bool:
    """Whether nothing was found."""
    FOUND.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds):
            (Path(corpus) / f"seed-{number}").write_bytes(seed)
        done = subprocess.run(
            [
                sys.executable, "-m", "tests.fuzz", "--child", target, corpus, f"-max_total_time={seconds}",
                f"-timeout={SLOW_S}", f"-max_len={BYTES_MAX}", f"-artifact_prefix={FOUND}/", "-print_final_stats=1",
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )  # fmt: skip
    if done.returncode:
        print(done.stdout[-6_000:])
        print(f"{target:12} found something: python -m tests.fuzz --target {target} --again {FOUND}/…")
        return False
    runs = re.findall(r"number_of_executed_units: (\d+)", done.stdout) or [0]
    covered = re.findall(r"cov: (\d+)", done.stdout) or [0]
    print(f"{target:12} {int(runs[-1]):>10,} inputs, {covered[-1]:>5} edges, nothing found")
    return True


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
        return 0
    from tests.fuzz.targets import TARGETS, seeds  # noqa: PLC0415 (the child imports it instrumented)

    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--again", type=Path, help="run one input, and see what happens")
    asked = parser.parse_args()
    if asked.again:
        TARGETS[asked.target](asked.again.read_bytes())
        return 0
    names = [asked.target] if asked.target else list(TARGETS)
    each = max(1, asked.seconds // len(names))
    clean = [fuzz(name, seeds(name), each) for name in names]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())

from __future__ import annotations

import hmac

from hypothesis import given
from hypothesis import strategies as st

from nightmail.e2ee.kdf import chain_step, hkdf, message_keys, root_step

keys = st.binary(min_size=32, max_size=32)


@given(keys | st.sampled_from([bytes(32), b"\xff" * 32, bytes(31) + b"\x01", b"\x36" * 32, b"\x5c" * 32]))
def test_a_chain_steps_by_the_librarys_hmac(chain: bytes) -> None:
    assert chain_step(chain) == (hmac.digest(chain, b"\x02", "sha256"), hmac.digest(chain, b"\x01", "sha256"))


@given(keys, keys)
def test_a_root_steps_and_a_message_key_spreads_by_hkdf(root: bytes, agreed: bytes) -> None:
    assert b"".join(root_step(root, agreed, b"label")) == hkdf(root, agreed, b"label", 64)
    assert b"".join(message_keys(root, b"label")) == hkdf(bytes(32), root, b"label", 80)

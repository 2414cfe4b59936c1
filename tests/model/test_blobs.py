from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.model.blobs import BlobId
from nightmail.model.forms import ACCOUNT_MAX

NAME = "000000000002a-" + "0f" * 16


@given(st.integers(1, ACCOUNT_MAX), st.binary(min_size=16, max_size=16))
def test_a_name_comes_back_as_it_was_written(owner: int, secret: bytes) -> None:
    blob = BlobId(owner, secret)
    assert BlobId.parse(str(blob)) == blob
    assert 0 <= blob.key < 1 << 62


@pytest.mark.parametrize(
    "text",
    [
        "", NAME.upper(), NAME + "\n", NAME[1:], NAME + "0", f"../{NAME}", NAME.replace("-", "/"), "2" + NAME[1:],
        NAME.replace("0f", "..", 1), " " + NAME, NAME.replace("2a", "٢a"),
    ],
)  # fmt: skip
def test_any_other_spelling_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="not the name of a blob"):
        BlobId.parse(text)


def test_blobs_of_one_account_lie_side_by_side() -> None:
    assert sorted([str(BlobId(3, b"\xff" * 16)), str(BlobId(4, bytes(16))), str(BlobId(3, bytes(16)))]) == [
        str(BlobId(3, bytes(16))), str(BlobId(3, b"\xff" * 16)), str(BlobId(4, bytes(16)))
    ]  # fmt: skip

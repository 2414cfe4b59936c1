"""Every store finds what was said, by the words of `client/store/search.py`."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from nightmail.client.messages import Message, Tick
from nightmail.client.store.port import Store
from nightmail.client.store.search import terms_of
from nightmail.e2ee.content import Content, encode_content
from nightmail.model.words import Kind
from tests.conformance.store_rig import ALICE, BOB, Kept, a_message, kept_store

__all__ = ["kept_store"]


def said(n: int, text: str, peer: int = BOB) -> Message:
    return replace(a_message(n, at=n, peer=peer), body=encode_content(Content(Kind.TEXT, text)))


def found(store: Store, typed: str, peer: int | None = None, limit: int = 50) -> list[str]:
    return [message.text for message in store.search(terms_of(typed), peer, limit)]


def test_a_message_is_found_by_the_beginning_of_each_of_its_words_newest_first(kept: Kept) -> None:
    for n, text in enumerate(("Meet me at the café", "the Cafeteria is closed", "tea instead?"), 1):
        kept.store.put_message(said(n, text))
    assert found(kept.store, "cafe") == ["the Cafeteria is closed", "Meet me at the café"]
    assert found(kept.store, "THE CAFÉ") == ["the Cafeteria is closed", "Meet me at the café"]
    assert found(kept.store, "me café") == ["Meet me at the café"]
    assert found(kept.store, "fe") == []
    assert found(kept.store, "the", limit=1) == ["the Cafeteria is closed"]


SENTENCES = (
    "我明天早上坐火车去北京大学，你来吗？",
    "新しいiPhoneを渋谷で買ったよ。スーパーの前で待ってる！",
    "พรุ่งนี้เราไปกินข้าวที่เชียงใหม่ด้วยกันไหม",
    "ຂ້ອຍຢູ່ວຽງຈັນ",
    "ខ្ញុំរស់នៅភ្នំពេញ",
    "ကျွန်တော်ရန်ကုန်မှာနေတယ်",
)
"""Chinese, Japanese, Thai, Lao, Khmer, Burmese."""


@pytest.mark.parametrize("sentence", SENTENCES)
def test_where_words_are_not_told_apart_any_part_of_a_sentence_finds_it(kept: Kept, sentence: str) -> None:
    kept.store.put_message(said(1, "something else, 別の話, 别的事, เรื่องอื่น"))
    kept.store.put_message(said(2, sentence))
    for run in re.findall("[^，？。！]+", sentence):
        for start in range(len(run)):
            if not run[start - 1 : start + 1].isascii():  # of Latin words it must be the beginning
                for end in range(start + 1, len(run) + 1):
                    assert sentence in found(kept.store, run[start:end]), run[start:end]
    kept.store.drop_message(said(2, "").id)
    assert not any(sentence in found(kept.store, char) for char in sentence)


def test_a_part_is_found_only_where_its_characters_stand_together_and_in_this_order(kept: Kept) -> None:
    kept.store.put_message(said(1, "京都東京"))
    kept.store.put_message(said(2, "東 京都"))
    assert found(kept.store, "東京") == ["京都東京"]
    assert found(kept.store, "京都") == ["東 京都", "京都東京"]
    assert found(kept.store, "東京都") == found(kept.store, "都京") == []
    assert found(kept.store, "東京 都東") == ["京都東京"]


def test_latin_words_among_other_scripts_are_found_by_their_beginning(kept: Kept) -> None:
    kept.store.put_message(said(1, "新しいiPhoneを買った"))
    for typed in ("iphone", "IPHO", "新しいiph", "いiPhoneを", "iphoneを買", "い iph った"):
        assert len(found(kept.store, typed)) == 1, typed
    for typed in ("phone", "iphoを", "新iphone", "iphone買"):
        assert found(kept.store, typed) == [], typed


def test_what_is_typed_is_never_syntax(kept: Kept) -> None:
    kept.store.put_message(said(1, 'a "quoted" OR* (bracket) text:column ^caret -minus NEAR NOT'))
    for typed in ('"', '"quoted', "OR", "NOT", "NEAR(", "(bracket", "text:", "^caret", "-minus", "a*", "'; DROP"):
        assert found(kept.store, typed) in ([], [kept.store.search(["a"], None, 1)[0].text])
    assert len(found(kept.store, 'quoted OR "bracket')) == 1
    assert found(kept.store, "") == found(kept.store, "…?!") == []


def test_a_search_may_be_about_one_conversation(kept: Kept) -> None:
    kept.store.put_message(said(1, "hello bob"))
    kept.store.put_message(said(2, "hello myself", peer=ALICE))
    assert found(kept.store, "hello", BOB) == ["hello bob"]
    assert found(kept.store, "hello") == ["hello myself", "hello bob"]


def test_a_tick_leaves_a_message_findable_once_and_another_text_replaces_the_first(kept: Kept) -> None:
    message = said(1, "before")
    for state in (Tick.PENDING, Tick.SENT, Tick.READ):
        kept.store.put_message(replace(message, state=state))
    assert [each.state for each in kept.store.search(["before"], None, 9)] == [Tick.READ]
    kept.store.put_message(replace(message, body=encode_content(Content(Kind.TEXT, "after"))))
    assert (found(kept.store, "before"), found(kept.store, "after")) == ([], ["after"])


def test_what_is_no_text_is_not_found(kept: Kept) -> None:
    kept.store.put_message(replace(said(1, "control"), kind=Kind.CONTROL))
    kept.store.put_message(replace(said(2, ""), body=b"\xff\xfe latin"))
    assert found(kept.store, "control") == found(kept.store, "latin") == []


def test_a_dropped_message_is_gone_from_history_and_search(kept: Kept) -> None:
    kept.store.put_message(said(1, "stay here"))
    kept.store.put_message(said(2, "go away"))
    kept.store.commit()
    kept.store.drop_message(said(2, "").id)
    kept.store.drop_message("never there")
    kept.store.commit()
    store = kept.crash()
    assert (found(store, "away"), found(store, "stay")) == ([], ["stay here"])
    assert store.message(said(2, "").id) is None
    assert len(store.history(BOB, 9)) == 1


def test_what_was_not_committed_cannot_be_found(kept: Kept) -> None:
    kept.store.put_message(said(1, "kept"))
    kept.store.commit()
    kept.store.put_message(said(2, "lost"))
    kept.store.drop_message(said(1, "").id)
    store = kept.crash()
    assert (found(store, "lost"), found(store, "kept")) == ([], ["kept"])

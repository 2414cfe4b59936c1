"""Dead letters, schedules and traces on the operations page, and texts that would like to be markup."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from nightmail.core.letters.pages import PAGE_LETTERS
from tests.api.operator.test_letter_routes import failed, listed
from tests.api.test_schedules import schedule, taken
from tests.outlets.hook import answering
from tests.server.rig import Person, Town, message
from tests.web.operator import Operator

SCRIPT = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
LABEL = "<img src=x onerror='document.title=1'>"


@pytest.fixture(scope="module")
def ada(town: Town) -> Person:
    return town.register("ada")


def rows(page: Page) -> Any:
    return page.locator(".list tbody tr")


def ask_until(page: Page, condition: str) -> None:
    """Have the view ask the server again and again until the page is so."""
    again = "dispatchEvent(new HashChangeEvent('hashchange'))"
    page.wait_for_function(f"() => {condition} ? true : void {again}", polling=500)


def test_a_letter_is_looked_at_replayed_after_a_question_and_then_settled(operator: Operator, ada: Person) -> None:
    town, page = operator.town, operator.page
    with answering() as hook:
        failed(town, ada, hook, 404, 404, 410)
        before = len(hook.calls)
        operator.go("Dead letters")
        page.get_by_role("navigation", name="Errors").get_by_role("link", name="http_404").click()
        expect(rows(page)).to_have_count(2)
        rows(page).first.click()
        detail = page.get_by_role("complementary", name="Letter")
        expect(detail).to_contain_text('{"a": 1}')
        detail.get_by_role("button", name="Replay").click()
        expect(page.get_by_role("dialog").get_by_role("button", name="Cancel")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert {each["status"] for each in listed(town, "webhook http_404")} == {"waiting"}
        detail.get_by_role("button", name="Replay").click()
        page.get_by_role("dialog").get_by_role("button", name="Replay").click()
        expect(detail.locator(".status")).to_contain_text("replayed")
        expect(detail.get_by_role("button", name="Replay")).to_be_disabled()
        expect(rows(page).first).to_contain_text("replayed")
        assert len(hook.calls) - before <= 1
    assert sorted(each["status"] for each in listed(town, "webhook http_404"))[-1] == "waiting"


def test_a_letter_is_walked_to_and_discarded_by_keys(operator: Operator, ada: Person) -> None:
    town, page = operator.town, operator.page
    with answering() as hook:
        failed(town, ada, hook, 403, 403)
    page.goto(f"{operator.url}/ops#/letters/webhook%20http_403")
    expect(rows(page)).to_have_count(2)
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    detail = page.get_by_role("complementary", name="Letter")
    wanted = listed(town, "webhook http_403")[1]["id"]
    expect(detail).to_contain_text(f"Letter {wanted}")
    page.keyboard.press("x")
    page.get_by_role("dialog").get_by_role("button", name="Discard").press("Enter")
    expect(detail.locator(".status")).to_contain_text("discarded")
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    assert [each["status"] for each in listed(town, "webhook http_403")] == ["waiting", "discarded"]


def test_all_letters_of_an_error_are_discarded_after_one_question(operator: Operator, ada: Person) -> None:
    town, page = operator.town, operator.page
    with answering() as hook:
        failed(town, ada, hook, 405, 405, 405)
    page.goto(f"{operator.url}/ops#/letters/webhook%20http_405")
    expect(rows(page)).to_have_count(3)
    page.get_by_role("button", name="Discard all").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard all").click()
    expect(page.get_by_role("status")).to_contain_text("3 letters discarded.")
    expect(rows(page).filter(has_text="discarded")).to_have_count(3)


def test_more_letters_than_a_page_has_are_turned_page_by_page(operator: Operator, ada: Person) -> None:
    town, page = operator.town, operator.page
    with answering(406) as hook:
        for _ in range(PAGE_LETTERS + 3):
            taken(schedule(town, ada, hook.url, delay_seconds=0))
        page.goto(f"{operator.url}/ops#/letters/webhook%20http_406")
        errors = page.get_by_role("navigation", name="Errors")
        expect(errors.get_by_role("link", name="http_406")).to_contain_text(str(PAGE_LETTERS + 3))
    page.reload()
    expect(rows(page)).to_have_count(3)
    page.keyboard.press("n")
    expect(rows(page)).to_have_count(PAGE_LETTERS)
    expect(page.get_by_role("button", name="Older")).to_be_disabled()
    page.get_by_role("button", name="Newer").click()
    expect(rows(page)).to_have_count(3)


def test_a_message_is_drawn_as_a_timeline_and_nonsense_gets_a_clear_answer(operator: Operator) -> None:
    town, page = operator.town, operator.page
    carol, dan = town.register("carol"), town.register("dan")
    sent = message(carol, dan)
    town.say(carol.device, sent)
    operator.go("Trace")
    page.get_by_label("Message id").fill(sent.id)
    page.keyboard.press("Enter")
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.locator("li")).to_have_count(2)
    expect(timeline.locator("li").first).to_contain_text("accepted")
    expect(timeline.locator("li").last).to_contain_text(f"{dan.device:x}")
    expect(timeline.locator("circle")).to_have_count(2)
    for nonsense in ("nonsense", SCRIPT, "../../v1/clock", f"{carol.device:x}:1:1:x"):
        page.get_by_label("Message id").fill(nonsense)
        page.get_by_role("button", name="Trace").click()
        expect(page.locator(".result").get_by_role("alert")).to_be_visible()
        expect(timeline).to_have_count(0)


def test_schedules_are_counted_listed_and_cancelled_without_their_content(operator: Operator, ada: Person) -> None:
    town, page = operator.town, operator.page
    ident = taken(schedule(town, ada, content={"secret": "of nobody's business"}))
    town.run(lambda: town.node.heart.loop.save(at_once=True))
    page.goto(f"{operator.url}/ops#/schedules/pending")
    row = rows(page).filter(has_text=ident)
    # A checkpoint is written aside: until it is durable, the list does not have it.
    ask_until(page, f"document.body.innerText.includes('{ident}')")
    expect(row).to_contain_text("ada")
    expect(page.locator("body")).not_to_contain_text("of nobody's business")
    row.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the message").click()
    expect(page.get_by_role("status")).to_contain_text("Cancelled.")
    assert town.get(f"/v1/schedule/{ident}", ada).json["state"] == "cancelled"


def test_what_a_webhook_was_to_be_told_is_shown_as_text_never_as_markup(operator: Operator, ada: Person) -> None:
    town, page = operator.town, operator.page
    with answering(451) as hook:
        taken(schedule(town, ada, hook.url, content={"text": SCRIPT}, delay_seconds=0))
        page.goto(f"{operator.url}/ops#/letters/webhook%20http_451")
        ask_until(page, 'document.querySelector(".list tbody tr")')
    rows(page).first.click()
    expect(page.locator(".detail pre")).to_contain_text("<script>document.title='broken'</script>")
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "Dead letters · Nightmail"


def test_a_hostile_error_text_is_shown_escaped_wherever_it_stands(operator: Operator) -> None:
    """No server of ours says such a thing; if one were made to, the page would show it as it is."""
    page = operator.page

    def lie(route: Any) -> None:
        if "classes" in route.request.url:
            route.fulfill(json={"classes": [{"error": SCRIPT, "count": 1}], "total": 1})
        else:
            problem = {"title": SCRIPT, "detail": SCRIPT, "code": "x", "status": 400, "type": "x"}
            route.fulfill(status=400, json=problem)

    page.route("**/v1/dead-letters**", lie)
    operator.go("Dead letters")
    expect(page.get_by_role("navigation", name="Errors")).to_contain_text(SCRIPT)
    expect(page.get_by_role("status")).to_contain_text(SCRIPT)
    page.goto(f"{operator.url}/ops#/letters/{SCRIPT}")
    assert page.locator("main img, main script, .toast img").count() == 0
    assert page.title() == "Dead letters · Nightmail"


def test_a_hostile_label_of_a_device_becomes_no_markup(operator: Operator) -> None:
    """The label comes from the device; the page gets it wherever an answer has it, and shows text only."""
    town, page = operator.town, operator.page
    eve, dan = town.register("eve"), town.register("dan-2")
    renamed = town.ask("PATCH", f"/v1/devices/{eve.device:x}", {"label": LABEL}, auth=eve)
    assert renamed.status < 300, renamed
    sent = message(eve, dan)
    town.say(eve.device, sent)
    operator.go("Trace")
    page.get_by_label("Message id").fill(sent.id)
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Timeline").locator("li")).to_have_count(2)
    for view in ("Overview", "Dead letters", "Schedules", "Storage", "Trace"):
        operator.go(view)
        assert page.locator("main img, main script").count() == 0
        assert page.title() != "1"

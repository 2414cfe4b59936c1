"""The operations page in a real browser: sign-in, figures, colours, keys, a narrow screen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.server.rig import Town, message
from tests.web.operator import Operator

TABS = ("Overview", "Dead letters", "Schedules", "Trace", "Storage")


def test_without_a_token_the_page_asks_for_it_and_says_what_is_wrong_with_another(page: Page, town: Town) -> None:
    operator = Operator(page, town)
    page.goto(f"{operator.url}/ops")
    field, said = page.get_by_label("Operator's token"), page.get_by_role("alert")
    expect(field).to_be_focused()
    for wrong, answer in (
        ("nonsense", "This is not the operator's token."),
        ("two words", "A token has no spaces, and only ASCII characters."),
        ("tøken", "A token has no spaces, and only ASCII characters."),
    ):
        field.fill(wrong)
        field.press("Enter")
        expect(said).to_have_text(answer)
    assert page.evaluate("sessionStorage.length") == 0
    field.fill(operator.token)
    field.press("Enter")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()


def test_the_token_is_kept_for_the_tab_alone_and_is_never_in_an_address(operator: Operator) -> None:
    page = operator.page
    page.reload()
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    for tab in TABS:
        operator.go(tab)
    assert [url for url in [*operator.requests, page.url] if operator.token in url] == []
    assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Operator's token")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_token_that_is_no_longer_the_operators_leads_back_to_the_sign_in(operator: Operator) -> None:
    page = operator.page
    page.evaluate("sessionStorage.setItem('nightmail.operator', 'an-older-one')")
    page.reload()
    expect(page.get_by_role("alert")).to_have_text("The token is no longer the operator's: sign in again.")


def test_tiles_and_charts_show_what_happens(operator: Operator) -> None:
    town, page = operator.town, operator.page
    ada, bob = town.register("ada"), town.register("bob")
    for n in range(1, 8):
        town.say(ada.device, message(ada, bob, n))
    expect(page.locator(".tile", has_text="Messages accepted")).to_contain_text("7 since the start")
    expect(page.locator(".tile", has_text="Devices online").locator("b")).to_have_text("0")
    expect(page.locator(".chart canvas")).to_have_count(8)
    drawn = """() => [...document.querySelectorAll(".chart canvas")].every((canvas) => {
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return pixels.some((value) => value !== 0);
    })"""
    page.wait_for_function(drawn)
    for span in ("6 h", "24 h", "7 days", "15 min"):
        button = page.get_by_role("button", name=span, exact=True)
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".bar .note")).to_contain_text("History since the start")
    expect(page.locator(".status")).to_contain_text("ready")


def test_alerts_that_fire_stand_before_those_about_to_and_their_words_are_text(operator: Operator) -> None:
    page = operator.page
    expect(page.locator(".alerts")).to_contain_text(re.compile("are watched|since"))
    script = "<script>document.title='broken'</script>"
    alert = {"value": 2.5, "compares": ">", "threshold": 1, "since": 1_700_000_000_000, "text": script, "runbook": "x"}

    def answer(route: Route) -> None:
        route.fulfill(
            json={
                "alerts": [
                    {**alert, "name": "Soon", "severity": "critical", "state": "pending"},
                    {**alert, "name": "Quiet", "severity": "critical", "state": "ok", "since": None, "value": None},
                    {**alert, "name": "Slow", "severity": "warning", "state": "firing"},
                    {**alert, "name": "Lost", "severity": "critical", "state": "firing"},
                ]
            }
        )

    page.route("**/v1/operator/alerts", answer)
    page.reload()
    rows = page.locator(".alerts li")
    expect(rows.locator("b")).to_have_text(["Lost", "Slow", "Soon"])
    expect(rows.locator(".pill")).to_have_text(["critical", "warning", "pending"])
    expect(rows.first).to_contain_text(script)
    expect(rows.first).to_contain_text("2.5 > 1, since")
    assert page.title() == "Overview · Nightmail"


def test_storage_shows_the_health_of_the_folder(operator: Operator) -> None:
    operator.go("Storage")
    page = operator.page
    for title in ("Disk", "Log", "Rows", "Checkpoint", "Folder check", "Clock"):
        expect(page.get_by_role("region", name=title)).to_be_visible()
    expect(page.get_by_role("region", name="Folder check")).to_contain_text("before this start")
    expect(page.get_by_role("region", name="Disk")).to_contain_text(str(operator.town.node.heart.folder))


def test_every_view_is_reached_by_keys_alone(operator: Operator) -> None:
    page = operator.page
    views = page.get_by_role("navigation", name="Views")
    for key, tab in reversed(list(enumerate(TABS, 1))):
        page.keyboard.press("Escape")  # The trace has a field, which takes what is typed.
        page.keyboard.press(str(key))
        expect(views.get_by_role("link", name=tab)).to_have_attribute("aria-current", "page")
    page.keyboard.press("]")
    expect(page.get_by_role("button", name="6 h", exact=True)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("[")
    expect(page.get_by_role("button", name="15 min")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next and previous row")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("4")
    expect(page.get_by_label("Message id")).to_be_focused()
    page.keyboard.type("12")
    expect(page.get_by_label("Message id")).to_have_value("12")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(views.get_by_role("link", name="Overview")).to_have_attribute("aria-current", "page")


def test_a_narrow_screen_needs_no_scrolling_to_the_side(operator: Operator) -> None:
    page = operator.page
    page.set_viewport_size({"width": 320, "height": 700})
    for tab in TABS:
        operator.go(tab)
        expect(page.get_by_role("navigation", name="Views").get_by_role("link", name=tab)).to_have_attribute(
            "aria-current", "page"
        )
        page.wait_for_load_state("networkidle")
        assert (tab, operator.overflow()) == (tab, 0)


@pytest.mark.parametrize(("scheme", "colour"), [("light", "rgb(244, 246, 249)"), ("dark", "rgb(13, 18, 28)")])
def test_light_and_dark_follow_the_system_until_one_is_chosen(operator: Operator, scheme: str, colour: str) -> None:
    page = operator.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    expect(page.locator("body")).to_have_css("background-color", colour)
    page.keyboard.press("t")
    expect(page.locator("body")).to_have_css("background-color", "rgb(244, 246, 249)")
    page.keyboard.press("t")
    expect(page.locator("body")).to_have_css("background-color", "rgb(13, 18, 28)")
    page.reload()
    expect(page.locator("body")).to_have_css("background-color", "rgb(13, 18, 28)")
    page.keyboard.press("t")
    expect(page.locator("body")).to_have_css("background-color", colour)

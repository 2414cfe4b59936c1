"""Settings: where they come from, who wins, and what is said about a wrong one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightmail.server.config import SETTINGS, Config, load
from nightmail.server.settings import BadSetting, written

DOCS = Path(__file__).parent.parent.parent / "docs"

TOKEN = "a token of some length"


def a_file(folder: Path, text: str) -> Path:
    file = folder / "nightmail.toml"
    file.write_text(text)
    return file


def test_without_anything_the_defaults_hold() -> None:
    assert load().config == Config()
    assert set(load().origins.values()) == {"default"}


def test_a_lifetime_may_be_never(tmp_path: Path) -> None:
    file = a_file(tmp_path, "[limits]\nttl_ms = 'never'\n")
    assert load(file).config.fold.ttl_ms == 0
    assert load(None, {"NIGHTMAIL_LIMITS__DEAD_LETTERS_MS": "never"}).config.fold.dead_letters_ms == 0
    with pytest.raises(BadSetting, match=r"drain_ms .* cannot be"):
        load(None, {"NIGHTMAIL_SERVER__DRAIN_MS": "never"})


def test_flags_win_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    file = a_file(tmp_path, "[server]\nport = 1\nhost = 'a'\nnode = 'x'\n")
    environ = {"NIGHTMAIL_SERVER__PORT": "2", "NIGHTMAIL_SERVER__HOST": "b"}
    found = load(file, environ, {"server.port": "3"})
    server = found.config.server
    assert (server.port, server.host, server.node) == (3, "b", "x")
    assert [found.origins[f"server.{key}"] for key in ("port", "host", "node", "drain_ms")] == [
        "--server-port",
        "NIGHTMAIL_SERVER__HOST",
        str(file),
        "default",
    ]


def test_the_environment_can_name_the_file(tmp_path: Path) -> None:
    file = a_file(tmp_path, "[limits]\nmailbox_entries = 5\n")
    assert load(environ={"NIGHTMAIL_CONFIG": str(file)}).config.fold.mailbox_entries == 5


def test_every_section_reaches_its_part(tmp_path: Path) -> None:
    text = "[data]\ncheckpoint_ms = 7\nretry_ms = [1, 2]\nwal_pages = 9\n[gateway]\nstrangers = 3\n[http]\ntraces = 2\n"
    config = load(a_file(tmp_path, text)).config
    assert (config.loop.saver.checkpoint_ms, config.loop.saver.retry_ms) == (7, (1, 2))
    assert (config.sqlite.wal_pages, config.gateway.strangers, config.http.traces) == (9, 3, 2)


def test_a_secret_is_read_from_a_file_and_never_shown(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(TOKEN + "\n")
    found = load(environ={"NIGHTMAIL_OPERATOR__TOKEN_FILE": str(secret)})
    assert found.config.operator.token == TOKEN
    (shown,) = [each for each in found.show() if each.name == "operator.token"]
    assert (shown.value, shown.origin) == ("***", "NIGHTMAIL_OPERATOR__TOKEN_FILE")
    assert TOKEN not in str(found.show())


WEBHOOK = {
    "accounts.verification": "webhook",
    "accounts.webhook_url": "https://sms.example/codes",
    "accounts.webhook_secret": "whsec_" + 43 * "A" + "=",
}


def test_a_webhook_has_an_address_and_a_secret_and_no_secret_is_shown() -> None:
    found = load(flags=WEBHOOK | {"accounts.secret": "p" * 32})
    assert found.config.accounts.webhook_url == "https://sms.example/codes"
    values = {each.name: each.value for each in found.show()}
    assert (values["accounts.webhook_secret"], values["accounts.secret"]) == ("***", "***")


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"accounts.webhook_url": ""}, "accounts.webhook_url .* must be an address that begins with https://"),
        ({"accounts.webhook_url": "http://sms.example"}, "must be an address that begins with https://"),
        ({"accounts.webhook_url": "ftp://x", "accounts.webhook_private": True}, "begins with http or https://"),
        ({"accounts.webhook_secret": ""}, r"accounts.webhook_secret .* is not of 24 to 64 bytes"),
        ({"accounts.webhook_secret": "?"}, r"accounts.webhook_secret .* is not base64"),
        ({"accounts.secret": "short"}, "accounts.secret .* must have 32 characters or more"),
    ],
)
def test_a_webhook_that_cannot_work_is_refused(flags: dict[str, object], why: str) -> None:
    with pytest.raises(BadSetting, match=why):
        load(flags=WEBHOOK | flags)


def test_what_is_shown_can_be_loaded_again(tmp_path: Path) -> None:
    lines: dict[str, list[str]] = {}
    for each in load().show():
        section, _, key = each.name.partition(".")
        lines.setdefault(section, []).append(f"{key} = {each.value}")
    text = "".join(f"[{section}]\n" + "\n".join(keys) + "\n" for section, keys in lines.items())
    assert load(a_file(tmp_path, text)).config == Config()


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        (
            {"NIGHTMAIL_SERVER__PORT": "99999"},
            "server.port (NIGHTMAIL_SERVER__PORT) cannot be 99999: it is a whole number from 0 to 65,535",
        ),
        ({"NIGHTMAIL_SERVER__PROT": "1"}, "NIGHTMAIL_SERVER__PROT sets nothing; did you mean NIGHTMAIL_SERVER__PORT?"),
        (
            {"NIGHTMAIL_LOG__LEVEL": "loud"},
            "log.level (NIGHTMAIL_LOG__LEVEL) cannot be 'loud': it is one of debug, error, info, warning",
        ),
        (
            {"NIGHTMAIL_OPERATOR__TOKEN": "short"},
            "operator.token (NIGHTMAIL_OPERATOR__TOKEN) must have 16 printable ASCII characters or more",
        ),
        (
            {"NIGHTMAIL_OPERATOR__TOKEN": TOKEN, "NIGHTMAIL_OPERATOR__TOKEN_FILE": __file__},
            "operator.token is set twice: by NIGHTMAIL_OPERATOR__TOKEN and by NIGHTMAIL_OPERATOR__TOKEN_FILE",
        ),
        (
            {"NIGHTMAIL_OPERATOR__TOKEN_FILE": "/nowhere"},
            "NIGHTMAIL_OPERATOR__TOKEN_FILE names /nowhere, which cannot be read: No such file or directory",
        ),
        (
            {"NIGHTMAIL_MEDIA__S3_REGION": "eu-1"},
            "media.s3_region (NIGHTMAIL_MEDIA__S3_REGION) needs media.s3_bucket beside it",
        ),
        (
            {"NIGHTMAIL_MEDIA__S3_BUCKET": "b", "NIGHTMAIL_MEDIA__S3_KEY_ID": "k"},
            "media.s3_key_id (NIGHTMAIL_MEDIA__S3_KEY_ID) and media.s3_secret_key need each other",
        ),
        (
            {"NIGHTMAIL_MEDIA__S3_BUCKET": "b", "NIGHTMAIL_MEDIA__S3_ENDPOINT": "ftp://b"},
            "media.s3_endpoint (NIGHTMAIL_MEDIA__S3_ENDPOINT) must be an address that begins with https:// or http://",
        ),
        (
            {"NIGHTMAIL_SERVER__TLS_KEY_FILE": "key.pem"},
            "server.tls_key_file (NIGHTMAIL_SERVER__TLS_KEY_FILE) needs server.tls_cert_file beside it",
        ),
        (
            {"NIGHTMAIL_LIMITS__UNREADABLE": "255"},
            "limits.unreadable (NIGHTMAIL_LIMITS__UNREADABLE) cannot be 255: it is a whole number from 256 to 65,536",
        ),
        (
            {"NIGHTMAIL_DATA__SEGMENT_BYTES": "4194305"},
            "data.segment_bytes (NIGHTMAIL_DATA__SEGMENT_BYTES) must be a multiple of 512",
        ),
        (
            {"NIGHTMAIL_PRESENCE__LIFETIME_MS": "30000"},
            "presence.lifetime_ms (NIGHTMAIL_PRESENCE__LIFETIME_MS) must be more than gateway.heartbeat_ms",
        ),
        (
            {"NIGHTMAIL_PRESENCE__ASKS_BURST": "99"},
            "presence.asks_burst (NIGHTMAIL_PRESENCE__ASKS_BURST) must be presence.asked and presence.watched or more",
        ),
    ],
)
def test_a_wrong_variable_is_answered_in_one_sentence(environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadSetting) as raised:
        load(environ=environ)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[sever]\n", "{}: there is no section [sever]; did you mean server?"),
        ("server = 1\n", "{}: server is a section, with keys of its own: [server]"),
        ("[server]\nprot = 1\n", "{}: there is no setting server.prot; did you mean server.port?"),
        ("[server]\nfolder = 'x'\n", "{}: there is no setting server.folder; did you mean data.folder?"),
        (
            "[server]\nport = true\n",
            "server.port ({}) cannot be True: it is a whole number from 0 to 65,535",
        ),
        ("[operator]\nopen_metrics = 1\n", "operator.open_metrics ({}) cannot be 1: it is true or false"),
        ("[operator]\ntoken = 7\n", "operator.token ({}) cannot be what it was given: it is text"),
    ],
)
def test_a_wrong_file_is_answered_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = a_file(tmp_path, text)
    with pytest.raises(BadSetting) as raised:
        load(file)
    assert str(raised.value) == sentence.format(file)


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="cannot be read: No such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(BadSetting, match="is not TOML"):
        load(a_file(tmp_path, "port: 1"))


def test_other_variables_of_ours_are_left_alone() -> None:
    assert load(environ={"NIGHTMAIL_PROFILE": "x", "HOME": "/"}).config == Config()


NAMES = st.sampled_from(sorted(SETTINGS))


@given(NAMES, st.text(max_size=40))
def test_any_text_in_the_environment_is_a_value_or_a_sentence(name: str, text: str) -> None:
    setting = SETTINGS[name]
    try:
        found = load(environ={setting.variable: text})
    except BadSetting as error:
        sentence = str(error)
        assert setting.key in sentence
        assert "\n" not in sentence
    else:
        assert found.origins[name] == setting.variable


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers() | st.text()),
    st.dictionaries(st.text(), st.integers()),
)  # fmt: skip


@given(NAMES, VALUES)
def test_a_value_of_any_type_is_taken_whole_or_refused_by_name(name: str, value: Any) -> None:
    setting = SETTINGS[name]
    try:
        taken = setting.check(value, "here")
    except BadSetting as error:
        sentence = str(error)
        assert sentence.startswith(f"{name} (here) cannot be ")
    else:
        assert taken == (tuple(value) if isinstance(value, list) else value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=200))
def test_any_bytes_as_a_file_are_settings_or_a_sentence(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "any.toml"
    file.write_bytes(data)
    try:
        load(file)
    except BadSetting as error:
        sentence = str(error)
        assert str(file) in sentence


def documented() -> dict[str, tuple[str, str]]:
    """Name → (default, environment variable), from the tables of docs/configuration.md."""
    text = (DOCS / "configuration.md").read_text()
    rows = re.findall(r"^\| `([a-z]+\.[a-z0-9_]+)` \| `(.*?)` \| `(\w+)` \|", text, re.MULTILINE)
    return {name: (default, variable) for name, default, variable in rows}


def test_every_setting_is_documented() -> None:
    assert documented() == {name: (written(setting.default), setting.variable) for name, setting in SETTINGS.items()}


def test_every_setting_says_what_it_is_for() -> None:
    assert [name for name, setting in SETTINGS.items() if not setting.help] == []


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"alerts.webhook_url": "http://alerts.example"}, "alerts.webhook_url .* cannot be called: .* https://"),
        ({"alerts.webhook_url": "https://127.0.0.1/"}, "alerts.webhook_url .* cannot be called: .* private network"),
        ({"alerts.webhook_url": "https://alerts.example"}, "alerts.webhook_secret .* is "),
        ({"alerts.silenced": "NotReady, DiskFiling"}, "alerts.silenced .* names no alert; did you mean DiskFilling?"),
    ],
)  # fmt: skip
def test_a_wrong_setting_of_alerts_is_named(flags: dict[str, object], why: str) -> None:
    with pytest.raises(BadSetting, match=why):
        load(flags=flags)

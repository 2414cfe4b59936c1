"""All settings of a node, and where each came from.

    defaults  <  file (TOML)  <  environment (NIGHTMAIL_SECTION__KEY)  <  flags

Knows:   which struct belongs to which section, and what each number may be.
Touches: the file it is given, and the files that hold secrets.
Never:   shows a secret.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec import Struct, structs

from nightmail.api.limits import HttpLimits
from nightmail.api.media.limits import MediaLimits
from nightmail.engine.clock import ClockLimits
from nightmail.engine.cluster.cassandra.settings import CassandraSettings
from nightmail.engine.cluster.kafka.settings import KafkaSettings
from nightmail.engine.cluster.redis.settings import RedisSettings
from nightmail.engine.filelog.log import SEGMENT_AGE_MS, SEGMENT_BYTES
from nightmail.engine.filelog.segment import SECTOR
from nightmail.engine.loop import LoopLimits
from nightmail.engine.presence import PresenceSettings
from nightmail.engine.saver import SaverLimits
from nightmail.engine.sqlite import SqliteSettings
from nightmail.gateway.group_limits import GroupLimits
from nightmail.gateway.groups import RECEIPT_NUMBERS
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.presence_limits import PresenceLimits
from nightmail.model.ids import DEVICES_EVER
from nightmail.model.limits import FoldLimits, FormLimits
from nightmail.outlets.addresses import Allowed, BadTarget, networks
from nightmail.outlets.caller import CallerLimits
from nightmail.outlets.places import PlaceLimits
from nightmail.outlets.push.http2 import Http2Limits
from nightmail.outlets.push.waker import WakerLimits
from nightmail.outlets.scheduled import WaitingLimits

from .alert_settings import AlertSettings
from .alerts.table import ALERTS
from .cluster_settings import ClusterSettings, missing_secret
from .credentials import check_accounts, check_media, check_push, check_secret
from .media_settings import MediaSettings
from .push_settings import PushSettings
from .settings import NUMBER_MAX, BadSetting, Bounds, Setting, Value, settings_of, written

FILE_VARIABLE = "NIGHTMAIL_CONFIG"
"""Names the file in the environment."""

DAY_MS = 24 * 60 * 60 * 1000


class ServerSettings(Struct, frozen=True):
    host: str = "127.0.0.1"
    """The address to listen at. Only this machine can reach the default; 0.0.0.0 is every IPv4 address, :: all."""
    port: int = 8640
    """The port for everything: devices, HTTP, metrics. 0: any that is free."""
    node: str = "nightmail"
    """This server's name, for devices and logs. Devices are told it, so it should not be the machine's."""
    tls_cert_file: str = ""
    """A certificate and its chain, PEM; empty: no TLS."""
    tls_key_file: str = ""
    """The certificate's private key, PEM; empty: it stands in the same file."""
    trusted_proxies: str = ""
    """Addresses and networks, with commas between, whose X-Forwarded-For is believed. Name your proxy here: otherwise
    all that it forwards counts as one address."""
    drain_ms: int = 15_000
    """On stop, how long devices and requests may take to leave, in ms; then they are cut off."""
    save_ms: int = 15_000
    """On stop, how long the last checkpoint may take, in ms. Without it the next start replays the log."""


class DataSettings(Struct, frozen=True):
    folder: str = "./nightmail-data"
    """Where everything is kept. One process at a time."""
    segment_bytes: int = SEGMENT_BYTES
    """Reserved ahead for each file of the log; a multiple of 512. Twice this is what an idle log takes."""
    segment_age_ms: int = SEGMENT_AGE_MS
    """A file of the log older than this, in ms, takes no more, so that what is trimmed is soon gone for good."""


class AccountSettings(Struct, frozen=True):
    verification: Literal["none", "webhook"] = "none"
    """How somebody proves that a handle is theirs. none: the first to register has it. webhook: by a code."""
    webhook_url: str = ""
    """Where codes are told, to be sent to the handle's owner: {"handle", "code", "expires_at", "expires_at_rfc3339"},
    signed."""
    webhook_secret: str = ""
    """What the calls are signed with: base64 of 24 to 64 bytes, behind whsec_ or not."""
    webhook_private: bool = False
    """Whether the webhook may be at a private or loopback address, and without TLS."""
    secret: str = ""
    """Pepper of registration locks and key of codes, 32 characters or more; empty: made at the first start, in the
    file accounts.secret. Without it every PIN is wrong."""


class OperatorSettings(Struct, frozen=True):
    token: str = ""
    """What an operator shows, 16 characters or more; empty: made at the first start, in the file operator.token."""
    open_metrics: bool = False
    """Whether /metrics answers without the operator's token."""


class ScheduleSettings(Struct, frozen=True):
    webhooks: Literal["off", "operator", "accounts"] = "off"
    """Who may schedule calls to webhooks. operator: with the operator's token, in the name of an account."""
    private_networks: str = ""
    """Addresses and networks, with commas between, that may be called although they are private, and without TLS."""
    secret: str = ""
    """What the secrets of accounts are derived from, which sign their calls; 32 characters or more. Empty: made at the
    first start, in the file webhooks.secret."""


class OutletSettings(Struct, frozen=True):
    runs_in: Literal["server", "processes"] = "server"
    """Who calls webhooks: a thread of the server, or processes of their own, on the same machine: nightmail outlet."""


class LogSettings(Struct, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important lines that are written."""
    format: Literal["text", "json"] = "text"
    """Lines for people, or one JSON object each for machines."""


class Config(Struct, frozen=True):
    """Everything that was decided before the node starts."""

    server: ServerSettings = ServerSettings()
    data: DataSettings = DataSettings()
    loop: LoopLimits = LoopLimits()
    sqlite: SqliteSettings = SqliteSettings()
    fold: FoldLimits = FoldLimits()
    form: FormLimits = FormLimits()
    gateway: GatewayLimits = GatewayLimits()
    presence: PresenceSettings = PresenceSettings()
    presence_limits: PresenceLimits = PresenceLimits()
    groups: GroupLimits = GroupLimits()
    http: HttpLimits = HttpLimits()
    media: MediaSettings = MediaSettings()
    media_limits: MediaLimits = MediaLimits()
    schedule: ScheduleSettings = ScheduleSettings()
    outlet: OutletSettings = OutletSettings()
    caller: CallerLimits = CallerLimits()
    places: PlaceLimits = PlaceLimits()
    waiting: WaitingLimits = WaitingLimits()
    push: PushSettings = PushSettings()
    http2: Http2Limits = Http2Limits()
    waker: WakerLimits = WakerLimits()
    accounts: AccountSettings = AccountSettings()
    operator: OperatorSettings = OperatorSettings()
    alerts: AlertSettings = AlertSettings()
    cluster: ClusterSettings = ClusterSettings()
    kafka: KafkaSettings = KafkaSettings()
    cassandra: CassandraSettings = CassandraSettings()
    redis: RedisSettings = RedisSettings()
    log: LogSettings = LogSettings()


SECTIONS: dict[str, tuple[type[Struct], ...]] = {
    "server": (ServerSettings,),
    "data": (DataSettings, LoopLimits, SaverLimits, SqliteSettings),
    "clock": (ClockLimits,),
    "limits": (FoldLimits, FormLimits),
    "gateway": (GatewayLimits,),
    "presence": (PresenceSettings, PresenceLimits),
    "groups": (GroupLimits,),
    "http": (HttpLimits,),
    "media": (MediaSettings, MediaLimits),
    "schedule": (ScheduleSettings,),
    "outlet": (OutletSettings, CallerLimits, PlaceLimits, WaitingLimits),
    "push": (PushSettings, Http2Limits, WakerLimits),
    "accounts": (AccountSettings,),
    "operator": (OperatorSettings,),
    "alerts": (AlertSettings,),
    "cluster": (ClusterSettings, KafkaSettings, CassandraSettings, RedisSettings),
    "log": (LogSettings,),
}

BOUNDS: dict[str, Bounds] = {
    "port": (0, 65_535),
    "node_port": (0, 65_535),
    "cql_port": (1, 65_535),
    "shards": (1, 4_096),
    "drain_ms": (0, DAY_MS),
    "save_ms": (0, DAY_MS),
    "segment_bytes": (1 << 20, 1 << 34),
    "batch_records": (1, 1 << 20),
    "batch_bytes": (1, 1 << 30),
    "linger_ms": (0, 1_000),
    "cache_kib": (64, 1 << 26),
    "ttl_ms": (0, NUMBER_MAX),
    "ahead_ms": (0, DAY_MS),
    "ring_acks": (1, 65_536),
    "tick_items": (1, 65_536),
    "slot_items": (1, 65_536),
    "stock_one_time": (1, 4_096),
    "stock_kem": (1, 256),
    "claims_kept": (1, 1_024),
    "body_bytes": (1, 1 << 24),
    "envelopes": (1, 4_096),
    "devices": (1, DEVICES_EVER),
    # Clients fill a read mark and an acknowledgement up to the default.
    "spans": (FormLimits().spans, 65_536),
    "authors": (FormLimits().authors, DEVICES_EVER),
    "unreadable": (FormLimits().unreadable, 65_536),
    "registrations_per_minute": (0, NUMBER_MAX),
    "codes_per_hour": (0, NUMBER_MAX),
}
"""Where 1 to 2**53 is too much or too little."""

SECRETS = frozenset(
    {"token", "secret", "webhook_secret", "s3_secret_key", "kafka_password", "cql_password", "redis_password"}
)


def _collect() -> Iterator[Setting]:
    for section, kinds in SECTIONS.items():
        for kind in kinds:
            yield from settings_of(section, kind, BOUNDS, SECRETS)


SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _collect()}
"""`section.key` → what can be set there."""

_VARIABLES = {setting.variable: setting for setting in SETTINGS.values()}
_SECRET_FILES = {f"{setting.variable}_FILE": setting for setting in SETTINGS.values() if setting.secret}


class Shown(Struct, frozen=True):
    """One setting as a person wants to see it."""

    name: str
    value: str
    unit: str
    help: str
    origin: str


class Loaded(Struct, frozen=True):
    """Settings, each with where it came from."""

    config: Config
    values: dict[str, Value]
    origins: dict[str, str]

    def show(self) -> list[Shown]:
        """Every setting, in the order of the documentation. Secrets are not shown."""
        return [
            Shown(
                name,
                "***" if setting.secret and self.values[name] else written(self.values[name]),
                setting.unit,
                setting.help,
                self.origins[name],
            )
            for name, setting in SETTINGS.items()
        ]


def load(
    file: Path | None = None, environ: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> Loaded:
    """Put the settings together. Raises BadSetting, in one sentence.

    `flags` are named `section.key`; text is read as the environment's is.
    """
    environ = environ or {}
    if file is None and environ.get(FILE_VARIABLE):
        file = Path(environ[FILE_VARIABLE])
    values = {name: setting.default for name, setting in SETTINGS.items()}
    origins = dict.fromkeys(SETTINGS, "default")
    for name, value, origin in (*_from_file(file), *_from_environment(environ), *_from_flags(flags or {})):
        values[name], origins[name] = value, origin
    _check_together(values, origins)
    return Loaded(_build(values), values, origins)


# --- where values come from -------------------------------------------------------------------


def _from_file(file: Path | None) -> Iterator[tuple[str, Value, str]]:
    if file is None:
        return
    try:
        sections = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadSetting(f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file} is not TOML: {error}") from None
    for section, keys in sections.items():
        if section not in SECTIONS:
            raise BadSetting(f"{file}: there is no section [{section}]{_meant(section, SECTIONS)}")
        if not isinstance(keys, dict):
            raise BadSetting(f"{file}: {section} is a section, with keys of its own: [{section}]")
        table: dict[str, object] = keys  # pyright: ignore[reportUnknownVariableType]
        for key, value in table.items():
            setting = _known(f"{section}.{key}", str(file))
            yield setting.name, setting.check(value, str(file)), str(file)


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Value, str]]:
    given: dict[str, str] = {}
    for variable, text in environ.items():
        if not variable.startswith("NIGHTMAIL_") or "__" not in variable:
            continue
        if setting := _VARIABLES.get(variable):
            value = setting.read(text, variable)
        elif setting := _SECRET_FILES.get(variable):
            value = setting.check(_read_secret(variable, Path(text)), variable)
        else:
            raise BadSetting(f"{variable} sets nothing{_meant(variable, (*_VARIABLES, *_SECRET_FILES))}")
        if other := given.get(setting.name):
            raise BadSetting(f"{setting.name} is set twice: by {other} and by {variable}")
        given[setting.name] = variable
        yield setting.name, value, variable


def _read_secret(variable: str, file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadSetting(f"{variable} names {file}, which cannot be read: {why}") from None


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, Value, str]]:
    for name, value in flags.items():
        setting = _known(name, "flag")
        origin = setting.flag
        yield name, setting.read(value, origin) if isinstance(value, str) else setting.check(value, origin), origin


def _known(name: str, origin: str) -> Setting:
    if setting := SETTINGS.get(name):
        return setting
    raise BadSetting(f"{origin}: there is no setting {name}{_meant(name, SETTINGS)}")


def _meant(name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    # The right key in the wrong section is a mistake that spelling does not show.
    _, dot, key = name.rpartition(".")
    near = [other for other in known if dot and other.endswith(f".{key}")][:1]
    near = near or difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


# --- what they make together ------------------------------------------------------------------


def _check_together(values: dict[str, Value], origins: dict[str, str]) -> None:
    """What no setting can tell by itself."""

    def refuse(name: str, why: str) -> BadSetting:
        return BadSetting(f"{name} ({origins[name]}) {why}")

    def number(name: str) -> int:
        value = values[name]
        assert isinstance(value, int)
        return value

    if number("data.segment_bytes") % SECTOR:
        raise refuse("data.segment_bytes", f"must be a multiple of {SECTOR:,}")
    if number("data.segment_bytes") < 4 * number("gateway.frame_bytes"):
        raise refuse("data.segment_bytes", "must be four times gateway.frame_bytes or more: one record must fit")
    if number("gateway.frame_bytes") <= number("limits.body_bytes"):
        raise refuse("gateway.frame_bytes", "must be more than limits.body_bytes: one message must fit")
    if number("gateway.silence_ms") <= number("gateway.heartbeat_ms"):
        raise refuse("gateway.silence_ms", "must be more than gateway.heartbeat_ms")
    if number("presence.lifetime_ms") <= number("gateway.heartbeat_ms"):
        raise refuse("presence.lifetime_ms", "must be more than gateway.heartbeat_ms")
    if number("presence.asks_burst") < max(number("presence.asked"), number("presence.watched")):
        raise refuse("presence.asks_burst", "must be presence.asked and presence.watched or more")
    if number("outlet.calls") <= number("outlet.unproven_calls"):
        raise refuse("outlet.calls", "must be more than outlet.unproven_calls")
    if number("groups.asks_burst") < RECEIPT_NUMBERS:
        raise refuse("groups.asks_burst", f"must be {RECEIPT_NUMBERS} or more: one question may count so much")
    if values["server.tls_key_file"] and not values["server.tls_cert_file"]:
        raise refuse("server.tls_key_file", "needs server.tls_cert_file beside it")
    token = values["operator.token"]
    if isinstance(token, str) and token and (len(token) < 16 or not token.isascii() or not token.isprintable()):
        raise refuse("operator.token", "must have 16 printable ASCII characters or more")

    try:
        networks(str(values["schedule.private_networks"]))
    except ValueError:
        raise refuse("schedule.private_networks", "must be addresses and networks, with commas between") from None
    for name in ("accounts.secret", "schedule.secret", "push.secret"):
        if 0 < len(str(values[name])) < 32:
            raise refuse(name, "must have 32 characters or more")
    check_push(values, refuse)
    check_media(values, refuse)
    check_accounts(values, refuse)
    _check_alerts(values, refuse)
    if values["cluster.enabled"] and (missing := missing_secret(values)):
        raise refuse(missing, "must be set, to the same on every node of a cluster")


def _check_alerts(values: dict[str, Value], refuse: Callable[[str, str], BadSetting]) -> None:
    known = {alert.name for alert in ALERTS}
    for name in AlertSettings(silenced=str(values["alerts.silenced"])).silenced_names:
        if name not in known:
            raise refuse("alerts.silenced", f"names no alert{_meant(name, tuple(known))}")
    if not values["alerts.webhook_url"]:
        return
    try:
        Allowed(networks(str(values["schedule.private_networks"]))).check(str(values["alerts.webhook_url"]))
    except BadTarget as error:
        raise refuse("alerts.webhook_url", f"cannot be called: {error}") from None
    check_secret("alerts.webhook_secret", values, refuse)


S = TypeVar("S", bound=Struct)


def _build(values: dict[str, Value]) -> Config:
    def made(section: str, kind: type[S]) -> S:
        fields: dict[str, Any] = {
            field.name: values[f"{section}.{field.name}"]
            for field in structs.fields(kind)
            if f"{section}.{field.name}" in values
        }
        return kind(**fields)

    return Config(
        server=made("server", ServerSettings),
        data=made("data", DataSettings),
        loop=structs.replace(
            made("data", LoopLimits), saver=made("data", SaverLimits), clock=made("clock", ClockLimits)
        ),
        sqlite=made("data", SqliteSettings),
        fold=made("limits", FoldLimits),
        form=made("limits", FormLimits),
        gateway=made("gateway", GatewayLimits),
        presence=made("presence", PresenceSettings),
        presence_limits=made("presence", PresenceLimits),
        groups=made("groups", GroupLimits),
        http=made("http", HttpLimits),
        media=made("media", MediaSettings),
        media_limits=made("media", MediaLimits),
        schedule=made("schedule", ScheduleSettings),
        outlet=made("outlet", OutletSettings),
        caller=made("outlet", CallerLimits),
        places=made("outlet", PlaceLimits),
        waiting=made("outlet", WaitingLimits),
        push=made("push", PushSettings),
        http2=made("push", Http2Limits),
        waker=made("push", WakerLimits),
        accounts=made("accounts", AccountSettings),
        operator=made("operator", OperatorSettings),
        alerts=made("alerts", AlertSettings),
        cluster=made("cluster", ClusterSettings),
        kafka=made("cluster", KafkaSettings),
        cassandra=made("cluster", CassandraSettings),
        redis=made("cluster", RedisSettings),
        log=made("log", LogSettings),
    )

"""The alerts of a node: judged now and then, shown to the operator, told to a webhook.

Knows:   when it last looked.
Touches: the node's metrics, to read them; the webhook.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from prometheus_client.core import Metric

from nightmail.api.operator.alert_routes import AlertShown, AlertsShown
from nightmail.api.times import rfc3339
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.signing import secret_bytes
from nightmail.outlets.webhooks import Webhook
from nightmail.server.alert_settings import AlertSettings

from .post import AlertPost
from .samples import series_of
from .watch import AlertStanding, AlertWatch


class NodeAlerts:
    """Tell it the time with `tick`. Times: `pace` never jumps, `clock` is the wall's."""

    def __init__(
        self, settings: AlertSettings, node: str, dispatch: Dispatch, metrics: Callable[[], Iterable[Metric]],
        clock: Callable[[], int], pace: Callable[[], int],
    ) -> None:  # fmt: skip
        self._metrics, self._clock, self._pace, self._every_ms = metrics, clock, pace, settings.every_ms
        self._watch = AlertWatch()
        self._post = _post(settings, node, dispatch)
        self._looked = -settings.every_ms
        self._telling: asyncio.Task[None] | None = None

    def tick(self) -> None:
        """On the node's event loop."""
        now = self._pace()
        if now - self._looked < self._every_ms:
            return
        self._looked = now
        self._watch.look(series_of(self._metrics()), now, self._clock())
        if self._post and (self._telling is None or self._telling.done()):
            self._telling = asyncio.create_task(self._post.tell(self._watch.standings, now))

    def show(self) -> AlertsShown:
        looked = self._watch.looked_at
        return AlertsShown(looked, rfc3339(looked), [_shown(standing) for standing in self._watch.standings])

    def close(self) -> None:
        if self._telling:
            self._telling.cancel()


def _post(settings: AlertSettings, node: str, dispatch: Dispatch) -> AlertPost | None:
    if not settings.webhook_url:
        return None
    webhook = Webhook(settings.webhook_url, secret_bytes(settings.webhook_secret), dispatch)
    return AlertPost(node, webhook.post, settings.repeat_ms, frozenset(settings.silenced_names))


def _shown(standing: AlertStanding) -> AlertShown:
    alert, since = standing.alert, standing.since
    return AlertShown(
        alert.name, alert.severity, standing.state, since or None, rfc3339(since) if since else None, standing.value,
        alert.condition.compares, alert.condition.threshold, alert.text, alert.runbook,
    )  # fmt: skip

"""What can happen, by topic. A class says everything about its record; `record.py` puts them together."""

from .accounts import *
from .body import *
from .deadletters import *
from .devices import *
from .firing import *
from .forwards import *
from .groups import *
from .keys import *
from .mailboxes import *
from .media import *
from .members import *
from .messages import *
from .pushes import *
from .receipts import *
from .record import *
from .schedules import *
from .shard import *

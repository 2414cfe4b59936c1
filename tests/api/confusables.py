"""Writes the table of characters that look alike:  python -m tests.api.confusables PATH

PATH is `src/tables.rs` of the crate unicode-security, version 0.1.3, as cargo fetches or vendors it. It holds the
confusables data of one version of Unicode. Another version changes who may have which name, so `test_skeletons.py`
pins it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from nightmail.api import skeletons

TABLE = Path(skeletons.__file__).with_name("confusables.txt")
VERSION = re.compile(r"UNICODE_VERSION: \(u64, u64, u64\) = \((\d+), (\d+), (\d+)\);")
MODULE = re.compile(r"pub mod confusable_detection \{(.*?)\n\}", re.DOTALL)
ENTRY = re.compile(r"\('\\u\{([0-9a-f]+)\}',\s*&\[([^\]]*)\]\)")
CHARACTER = re.compile(r"\\u\{([0-9a-f]+)\}")
HEAD = """\
# Which characters look like which, for skeletons (Unicode Technical Standard 39, section 4).
# Unicode {version}: its confusables data. Each line: a character, and what stands for it.
# Copyright (c) 1991-2026 Unicode, Inc. All rights reserved. See NOTICE for its terms.
"""


def table_of(source: str) -> str:
    """The text of `confusables.txt`. Raises ValueError if the source has another form than that of the crate."""
    version, module = VERSION.search(source), MODULE.search(source)
    if version is None or module is None:
        raise ValueError("this is not src/tables.rs of unicode-security")
    entries = [(int(code, 16), CHARACTER.findall(target)) for code, target in ENTRY.findall(module[1])]
    if len(entries) != module[1].count("('"):
        raise ValueError("the table has entries of another form")
    lines = (" ".join(f"{int(each, 16):04X}" for each in (f"{code:x}", *target)) for code, target in sorted(entries))
    return HEAD.format(version=".".join(version.groups())) + "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    TABLE.write_text(table_of(Path(sys.argv[1]).read_text("utf-8")), "utf-8")

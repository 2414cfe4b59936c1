"""The style sheet of the window, in Textual's CSS."""

CSS = """
#window { height: 1fr; }
#left { width: 32; border-right: solid $panel; }
#right { width: 1fr; }
#own, #head { height: 1; padding: 0 1; text-style: bold; background: $panel; color: $text; }
#conversations { height: 1fr; border: none; background: $background; padding: 0; }
#conversations > .option-list--option { padding: 0 1; }
#messages > .option-list--option { padding: 0 1; }
#messages { height: 1fr; border: none; background: $background; padding: 0; }
#messages > .option-list--option-disabled { color: $text-muted; }
#messages > .option-list--option-highlighted { background: $background; }
#messages:focus > .option-list--option-highlighted { background: $panel; }
#reply { height: 1; padding: 0 1; color: $text-muted; display: none; }
#composer { height: auto; min-height: 3; max-height: 8; border: round $panel; background: $background; }
#composer:focus { border: round $accent; }
#status { height: 1; padding: 0 1; background: $panel; color: $text-muted; }
#status.online { color: $success; }
#status.offline, #status.connecting { color: $warning; }
#status.ended { color: $error; }
.narrow #left { width: 100%; border: none; }
.narrow #right { display: none; }
.narrow.in-conversation #left { display: none; }
.narrow.in-conversation #right { display: block; }
ModalScreen { align: center middle; background: $background 60%; }
.box { width: 80%; max-width: 90; height: 80%; border: round $accent; background: $surface; padding: 0 1; }
.box.small { height: auto; max-width: 60; }
.title { text-style: bold; padding: 0 0 1 0; }
#found { height: 1fr; border: none; background: $surface; }
.keys { padding: 1 0 0 0; color: $text-muted; height: auto; }
#number { padding: 0 0 1 0; text-style: bold; text-align: center; }
#qr-code { width: auto; }
#advice { padding: 1 0 0 0; color: $text-muted; text-align: center; }
.safety { height: auto; max-height: 90%; max-width: 64; }
.safety Center { height: auto; }
"""

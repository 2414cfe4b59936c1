"""What decides whether a promise was kept. Some judges watch while the world runs: each frame of a device (`tap`), each
commit of its store (`witness`), each row that a step touches (`strict`), each record that was made durable (`shadow`).
`history` collects what they saw, `checkers` compares it in the end, and `story` tells a person how it broke. A judge
decides from what it saw itself, never from what the program says about itself.
"""

"""One Hypothesis profile for all: the same examples on every machine, and no clock."""

import hypothesis

hypothesis.settings.register_profile(
    "capacity", deadline=None, derandomize=True, max_examples=100, print_blob=True
)
hypothesis.settings.load_profile("capacity")
